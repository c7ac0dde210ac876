"""Delete what moves between two PostgreSQL databases have left that nobody has ended.

The rows of an owner who never arrived, or who is gone, go in small transactions; then the triggers
that watched him, one table at a time.
"""

from __future__ import annotations

from gateway.domain.product_ownership import OWNERSHIP, UNOWNED
from outbox.database.postgres import guards, signals
from outbox.database.postgres.keys import key_of
from outbox.database.transaction import Database, Tx
from outbox.queue.upkeep import ended_moves, owner_rows
from outbox.queue.upkeep.owner_rows import SLICE, Key

TABLES = tuple(table for table in OWNERSHIP if table not in UNOWNED)[::-1]
"""The tables with rows of owners, children before parents."""


class LeftMoves:
    """The duty of one database."""

    def __init__(self, db: Database) -> None:
        # Its connections wait for no request, and none waits for them.
        self._db = db.apart("migration")

    async def run_once(self) -> None:
        """Delete the rows, then the triggers, of all moves that are given up or have ended."""
        guarded = await self._db.read(guards.found)
        owners = sorted({move.owner_id for move in guarded})
        for owner_id, state in (await self._db.read(ended_moves.old)).items():
            # A command drops the triggers of an owner who is gone when his rows are deleted.
            if state == "arriving" or owner_id in owners:
                await self._forget(owner_id)
        moving = await self._db.read(ended_moves.moving, owners)
        for table, owner_id in sorted({(move.table, move.owner_id) for move in guarded}):
            if owner_id not in moving:
                await self._db.write(_drop, table, owner_id)

    async def _forget(self, owner_id: str) -> None:
        # Triggers may make rows again, of tables that are done.
        while sum([await self._delete(table, owner_id) for table in TABLES]):
            pass
        await self._db.write(_end, owner_id)

    async def _delete(self, table: str, owner_id: str) -> int:
        total = 0
        after: Key = ()
        while True:
            deleted, after = await self._db.write(_slice, table, owner_id, after)
            total += deleted
            if not after or deleted < SLICE:
                return total


async def _slice(tx: Tx, table: str, owner_id: str, after: Key) -> tuple[int, Key]:
    move_id = await _taken(tx, owner_id)
    if move_id is None:
        return 0, ()
    await guards.moves(tx, move_id)
    key = await key_of(tx, table)
    return await owner_rows.delete_slice(tx, OWNERSHIP, table, key, owner_id, after)


async def _taken(tx: Tx, owner_id: str) -> str | None:
    return await ended_moves.take(tx, owner_id) if await guards.is_alone(tx) else None


async def _end(tx: Tx, owner_id: str) -> None:
    if await _taken(tx, owner_id) is not None:
        await ended_moves.forget(tx, owner_id)
        await signals.tell(tx, "owners")


async def _drop(tx: Tx, table: str, owner_id: str) -> None:
    # A command that has begun meanwhile may have made them anew.
    if await guards.is_alone(tx) and not await ended_moves.moving(tx, [owner_id]):
        await guards.drop(tx, table, owner_id)
