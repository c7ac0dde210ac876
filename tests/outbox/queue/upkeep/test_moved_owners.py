"""A process that cannot hear of moves asks for each read where the owner is."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from outbox.database.transaction import Database, RequestBudget, Tx, patience
from outbox.errors import OwnerElsewhere
from outbox.queue.upkeep import owner_moves
from outbox.queue.upkeep.moved_owners import followed
from outbox.queue.upkeep.owner_moves import MoveState, State
from tests.support.databases import PostgresServer
from tests.support.movers import opened
from tests.support.waiting import until

LISTENERS = """
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and query like '%nodes n%' and pid <> pg_backend_pid()
"""


@pytest.fixture
async def db(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    """A database of a process that hears of moves."""
    db = await opened(url := await postgres_server.fresh())
    async with followed(db):
        await until(lambda: 0 < db.moves_epoch == db.moves_seen)
        yield db
    await db.close()
    await postgres_server.drop(url)


async def one(tx: Tx) -> int:
    row = await tx.one("select 1 as one")
    return 0 if row is None else int(row["one"])


async def reads(db: Database, owner: str, how: str = "read") -> int:
    """Read as a request of an owner does; how: in a read, a scan or a write."""
    noted = patience.set(RequestBudget(owner=owner))
    try:
        if how == "scan":
            return await db.scan(owner, one)
        return await (db.write(one) if how == "write" else db.read(one))
    finally:
        patience.reset(noted)


async def unheard(db: Database, state: State) -> None:
    """Store where the owner `ana` is, and tell nobody."""
    await db.write(owner_moves.stand, "ana", MoveState(state, "m", "two"))


@pytest.mark.slow
async def test_who_hears_asks_nothing(db: Database) -> None:
    await unheard(db, "leaving")
    assert await reads(db, "ana") == 1


async def test_who_does_not_hear_asks(db: Database) -> None:
    db.moves_seen = 0
    await unheard(db, "resting")
    assert await reads(db, "ana") == 1
    states: tuple[State, ...] = ("leaving", "gone", "arriving")
    for state in states:
        await unheard(db, state)
        for how in ("read", "scan", "write"):
            with pytest.raises(OwnerElsewhere):
                await reads(db, "ana", how)
        assert await reads(db, "bia") == 1
    # A duty belongs to no request.
    assert await db.read(one) == 1


async def test_a_lost_connection_is_noticed_and_what_was_missed_is_read(db: Database) -> None:
    heard = db.moves_epoch
    await unheard(db, "leaving")

    async def end(tx: Tx) -> int:
        return len(await tx.all(LISTENERS))

    assert await db.read(end) == 1
    await until(lambda: db.moves_epoch != heard)
    await until(lambda: 0 < db.moves_epoch == db.moves_seen)
    assert "ana" in db.unreadable_owners
