"""Guards of a moving owner: what they note, refuse and keep, and whom they leave alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from aiohttp import web

from outbox.clock import SystemClock
from outbox.database.ownership import OUTBOX
from outbox.database.postgres import guards
from outbox.database.postgres.guards import Guarded
from outbox.database.postgres.move_connection import MoveConnection, open_beside
from outbox.database.transaction import Row, Tx
from outbox.database.transfer import Place
from outbox.errors import CannotStart, OwnerElsewhere
from outbox.ids import Ids
from outbox.queue.state import lanes
from outbox.queue.upkeep import owner_moves
from outbox.queue.upkeep.owner_moves import MoveState, State
from tests.support.cluster import UNSYNCED, own_server
from tests.support.databases import PostgresServer
from tests.support.drain import OWNER, Inbox, add_webhook, drain, inbox, make, ring
from tests.support.movers import opened
from tests.support.receiver import Answer
from tests.support.waiting import until

OTHER = "f" * 24
TABLES = (Guarded("webhooks", ("id",), False), Guarded("events", ("id",), True),
          Guarded("passes", ("delivery_id",), True))  # fmt: skip
RENAME = "update webhooks set name = 'new' where owner_id = $1"
PASS = (
    "insert into passes (delivery_id, webhook_id) select 'd', id from webhooks where owner_id = $1"
)


@pytest.fixture
async def url(postgres_server: PostgresServer) -> AsyncIterator[str]:
    url = await postgres_server.fresh()
    db = await opened(url)
    for owner in (OWNER, OTHER):
        await add_webhook(db, ring(), "http://127.0.0.1:1/", owner=owner)
    await db.close()
    yield url
    await postgres_server.drop(url)


async def guarded(stack: AsyncExitStack, url: str, state: State) -> MoveConnection:
    place = Place(url, SystemClock(), Ids())
    beside = await stack.enter_async_context(open_beside(place))
    await beside.step(owner_moves.stand, OWNER, MoveState("copying", "m", "there"))
    for table in TABLES:
        await beside.execute(guards.at_source(OUTBOX, table, OWNER))
    await beside.step(owner_moves.stand, OWNER, MoveState(state, "m", "there"))
    return beside


async def rename(tx: Tx, owner_id: str) -> int:
    return await tx.run(RENAME, owner_id)


async def let_pass(tx: Tx, owner_id: str) -> int:
    return await tx.run(PASS, owner_id)


@pytest.mark.parametrize("state", ["resting", "leaving", "gone"])
async def test_a_process_that_knows_nothing_is_refused(url: str, state: State) -> None:
    async with AsyncExitStack() as stack:
        beside = await guarded(stack, url, state)
        db = await opened(url)
        stack.push_async_callback(db.close)
        with pytest.raises(OwnerElsewhere):
            await db.write(rename, OWNER)
        assert await db.write(rename, OTHER) == 1
        if state == "resting":
            # Its queue still settles.
            assert await db.write(let_pass, OWNER) == 1
            await db.write(make, "r")
        else:
            with pytest.raises(OwnerElsewhere):
                await db.write(let_pass, OWNER)
            # As a unit that only puts rows off, in a group with others.
            with pytest.raises(OwnerElsewhere):
                await db.write(make, "r")
        # Without the guard it would write.
        for statements in guards.dropped(["webhooks"], OWNER):
            await beside.execute(statements)
        assert await db.write(rename, OWNER) == 1


@pytest.mark.slow
async def test_a_note_of_an_owner_who_leaves_keeps_no_delivery_of_others_waiting(url: str) -> None:
    """The note of a node that found his lane locked, which nobody can take any more."""
    async with AsyncExitStack() as stack:
        db = await opened(url)
        stack.push_async_callback(db.close)
        box = await stack.enter_async_context(inbox())
        box.answer = once_down(box)
        note = "insert into wakes (webhook_id) select id from webhooks where owner_id = $1"
        await db.write(run, note, OWNER)
        place = Place(url, SystemClock(), Ids())
        beside = await stack.enter_async_context(open_beside(place))
        await beside.execute(guards.at_source(OUTBOX, Guarded("wakes", (), True), OWNER))
        await beside.step(owner_moves.stand, OWNER, MoveState("leaving", "m", "there"))
        with pytest.raises(OwnerElsewhere):
            await db.write(lanes.wake_noted)
        running = await stack.enter_async_context(drain(db, ring()))
        await running.webhook(box.url, owner=OTHER)
        await db.write(make, "r", owner=OTHER)
        await running.watch.until("delivery_finished")
        assert len(box.got) == 2


def once_down(box: Inbox) -> Answer:
    """Return the answer of a receiver that fails once."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=500 if len(box.got) == 1 else 200)

    return answer


async def test_one_move_at_a_time(url: str) -> None:
    place = Place(url, SystemClock(), Ids())
    async with open_beside(place):
        with pytest.raises(CannotStart, match="another move"):
            async with open_beside(place):
                pass


SLOW = {
    "autovacuum_naptime": "1s", "autovacuum_vacuum_cost_delay": "100ms",
    "autovacuum_vacuum_cost_limit": "1",
}  # fmt: skip
FILL = "insert into move_changes (mover, name, key) select '', '', n from generate_series(1, $1) n"
VACUUMED = """
select 1 from pg_locks l join pg_stat_activity using (pid)
where backend_type = 'autovacuum worker' and l.relation = to_regclass('move_changes')
"""


@pytest.mark.proof
async def test_an_autovacuum_gives_way() -> None:
    """One of a large table takes longer than a move tries to get its lock."""
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(own_server(UNSYNCED | SLOW))
        address = await PostgresServer(cluster.url).fresh()
        db = await opened(address)
        stack.push_async_callback(db.close)
        place = Place(address, SystemClock(), Ids())
        beside = await stack.enter_async_context(open_beside(place, 1))
        await db.write(run, FILL, 100_000)
        await db.write(run, "delete from move_changes")
        await until(lambda: db.read(one, VACUUMED), rest=0.1)
        trigger = guards.refusing("move_changes")
        with pytest.raises(CannotStart, match="locks"):
            await beside.execute(text for text in trigger if text != guards.free("move_changes"))
        await beside.execute(trigger)


async def run(tx: Tx, sql: str, *args: object) -> int:
    return await tx.run(sql, *args)


async def one(tx: Tx, sql: str) -> Row | None:
    return await tx.one(sql)
