"""Give up moves that nobody has gone on with for a week, and delete what they have left.

A move whose command runs is never given up. In the source an owner who is copying is here again. In
the target the move of an owner who is arriving gets another id, so that no command can open him,
and his rows are deleted before his row of `owners`. An owner who is closed in the source waits for
the command.
"""

from __future__ import annotations

from dataclasses import replace

from outbox.database import locks
from outbox.database.sql import IDS, items
from outbox.database.transaction import Tx
from outbox.durations import SECOND
from outbox.queue.upkeep import owner_moves
from outbox.queue.upkeep.owner_moves import MoveState, State

KEPT = 7 * 86_400 * SECOND
"""How long a move may stand still before it counts as given up."""
GIVEN_UP = "ended."
"""Before the id of a move that the target has given up."""

# The lock of outbox.database.postgres.move_connection: a command has it while it runs.
_ALONE = f"""/*postgres and not exists (
  select 1 from pg_locks where locktype = 'advisory' and objsubid = 1
    and (cast(classid as bigint) << 32) | cast(objid as bigint) = own_lock({locks.MOVE})
    and database = (select oid from pg_database where datname = current_database()))*/"""
_LEFT = f"delete from owners where state = 'copying' and changed_at < $1 {_ALONE}"
_PURGE = """
delete from move_changes where number in (
  select number from move_changes where not exists (
    select 1 from owners where id = mover and state in ('copying', 'resting', 'leaving'))
  order by number limit $1)
"""
_OLD = f"""
select id, state from owners where state in ('arriving', 'gone') and changed_at < $1
union
select id, state from owners where state = 'arriving' and move_id like '{GIVEN_UP}%' order by id
"""
_MOVING = f"""
select id from owners where id in {IDS} and (state not in ('here', 'gone') or changed_at >= $2)
"""
_FORGET = "delete from owners where id = $1 and state = 'arriving'"


async def purge(tx: Tx, limit: int) -> int:
    """Give up moves in the source; delete up to `limit` notes of ended ones. Return how many."""
    await tx.run(_LEFT, tx.now - KEPT)
    return await tx.run(_PURGE, limit)


async def old(tx: Tx) -> dict[str, State]:
    """Return the owners of whom rows may be left that an ended move should have deleted."""
    return {row["id"]: row["state"] for row in await tx.all(_OLD, tx.now - KEPT)}


async def moving(tx: Tx, owners: list[str]) -> set[str]:
    """Return those of these owners whose move goes on."""
    return {row["id"] for row in await tx.all(_MOVING, items(owners), tx.now - KEPT)}


async def take(tx: Tx, owner_id: str) -> str | None:
    """Give up a move in the target, and hold its row; return its id, by which the guards know it.

    An owner who is gone has no more rows either. Return None when a command has gone on meanwhile.
    """
    await owner_moves.lock_owner(tx, owner_id)
    at = await owner_moves.standing(tx, owner_id)
    if at.state == "gone":
        return at.move_id
    if at.state != "arriving":
        return None
    if not at.move_id.startswith(GIVEN_UP):
        if owner_id not in await old(tx):
            return None
        at = replace(at, move_id=GIVEN_UP + at.move_id)
        await owner_moves.stand(tx, owner_id, at)
    return at.move_id


async def forget(tx: Tx, owner_id: str) -> None:
    """Forget an owner who never arrived, when none of his rows is left."""
    await tx.run(_FORGET, owner_id)


def is_given_up(at: MoveState) -> bool:
    """Return whether the target deletes what has arrived."""
    return at.state == "arriving" and at.move_id.startswith(GIVEN_UP)
