"""Follow which owners may not write here: see outbox.queue.upkeep.owner_moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from types import MappingProxyType

from outbox.database.transaction import Database, Home
from outbox.errors import DatabaseUnavailable
from outbox.queue.upkeep import owner_moves
from outbox.queue.upkeep.owner_moves import MoveState

RETRY_SECONDS = 1.0


@asynccontextmanager
async def followed(
    db: Database, addresses: Mapping[str, str] = MappingProxyType({})
) -> AsyncIterator[None]:
    """Let both maps of `db` have these owners while the block runs.

    `addresses` are those of other installations by name.
    """
    moved = asyncio.Event()
    let_go = db.on_move(moved.set)
    await _look(db, addresses)
    following = asyncio.create_task(_follow(db, moved, addresses), name="moved-owners")
    try:
        yield
    finally:
        let_go()
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following


async def _follow(db: Database, moved: asyncio.Event, addresses: Mapping[str, str]) -> None:
    while True:
        await moved.wait()
        moved.clear()
        try:
            await _look(db, addresses)
        except DatabaseUnavailable:
            # A guard in the database refuses meanwhile what this process does not know of.
            await asyncio.sleep(RETRY_SECONDS)
            moved.set()


async def _look(db: Database, addresses: Mapping[str, str]) -> None:
    # Before the read: what is told to a later connection may be newer.
    heard = db.moves_epoch
    moved = await db.read(owner_moves.closed_owners)
    db.closed_owners = homes(moved, addresses)
    db.unreadable_owners = homes(owner_moves.unreadable_owners(moved), addresses)
    db.moves_seen = heard


def homes(
    elsewhere: Mapping[str, MoveState], addresses: Mapping[str, str]
) -> Mapping[str, Home | None]:
    """Return where these owners have moved to; None for one who still moves.

    `addresses` are those of installations by name; None also for a database that is not among them.
    """
    gone = {owner: at.peer for owner, at in elsewhere.items() if at.state == "gone"}
    return {
        owner: (gone[owner], addresses[gone[owner]]) if gone.get(owner) in addresses else None
        for owner in elsewhere
    }
