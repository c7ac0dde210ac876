"""Two installations in two schemas of one database: each leads, signals and moves by itself."""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import AsyncExitStack
from functools import partial
from typing import NamedTuple

import asyncpg
import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.migrate import created, migrate
from outbox.database.postgres import signals
from outbox.database.postgres.exclusive import open_exclusive
from outbox.database.postgres.move_connection import open_beside
from outbox.database.transaction import Tx
from outbox.database.transfer import Place
from outbox.errors import CannotStart
from outbox.ids import Ids
from outbox.queue.drain.fanout import TURN
from outbox.queue.state.lanes import NO_FAN_OUT
from outbox.queue.upkeep import ended_moves
from outbox.webhooks import signing_keys
from tests.outbox.database.postgres.conftest import Open
from tests.outbox.database.test_leadership import candidates, the_one
from tests.support.databases import ORDINARY, SOURCES, PostgresServer
from tests.support.drain import rows
from tests.support.waiting import until


class Two(NamedTuple):
    """The addresses of an installation in `public`, and of one in `b` of the same database."""

    a: str
    b: str


@pytest.fixture
async def two(url: str) -> Two:
    connection = await asyncpg.connect(url)
    await connection.execute("create schema b")
    await connection.close()
    two = Two(url, f"{url}{'&' if '?' in url else '?'}search_path=b")
    db = await database.open(two.b, clock=SystemClock(), ids=Ids())
    await migrate(db, SOURCES)
    await db.close()
    return two


def place(url: str) -> Place:
    return Place(url, SystemClock(), Ids())


async def names(tx: Tx) -> tuple[int, int, str]:
    row = await tx.one(
        "select own_lock(7201966) as leads, schema_lock(7201964) as migrates,"
        " own_channel() as channel"
    )
    assert row is not None
    return row["leads"], row["migrates"], row["channel"]


async def test_each_leads_and_locks_beside_the_other(two: Two, handle: Open) -> None:
    async with candidates(two.a, 2) as in_a, candidates(two.b, 2) as in_b:
        await the_one(in_a)
        await the_one(in_b)
    a, b = await handle(two.a), await handle(two.b)

    async def fans_out(tx: Tx) -> bool:
        row = await tx.one(TURN)
        assert row is not None
        return bool(row["mine"])

    async def beside(tx: Tx) -> bool:
        for lock in (NO_FAN_OUT, signing_keys.ONE_AT_A_TIME):
            await tx.one(lock)
        return not await a.write(fans_out) and await b.write(fans_out)

    assert await a.write(beside)


async def test_each_hears_its_own_signals(two: Two, handle: Open) -> None:
    told: list[str] = []
    handles = {name: [await handle(url) for _ in range(2)] for name, url in two._asdict().items()}

    async def change(tx: Tx, webhook: str) -> None:
        tx.changed.add(webhook)

    def tell(name: str, ids: Collection[str]) -> None:
        told.extend(f"{name}: {one}" for one in ids)

    for name, (first, second) in handles.items():
        first.on_change(partial(tell, name))
        await until(partial(getattr, first, "moves_epoch"))
        await second.write(change, f"w{name}")
        await until(partial(told.__contains__, f"{name}: w{name}"))
    assert told == ["a: wa", "b: wb"]


async def test_commands_for_one_do_not_meet_the_other(two: Two, handle: Open) -> None:
    """A restore, a move, and what deletes a move whose command is gone."""
    node = await handle(two.a)
    async with open_exclusive(place(two.b)), open_beside(place(two.a)):
        async with open_beside(place(two.b)):
            with pytest.raises(CannotStart, match="another move uses"):
                async with open_beside(place(two.b)):
                    raise AssertionError
    with pytest.raises(CannotStart, match="stop all its servers"):
        async with open_exclusive(place(two.a)):
            raise AssertionError
    await node.close()
    async with open_exclusive(place(two.a)):
        pass
    await handle(two.b)
    with pytest.raises(CannotStart, match="stop all its servers"):
        async with open_exclusive(place(two.b)):
            raise AssertionError


async def test_a_move_is_given_up_unless_its_own_command_runs(two: Two, handle: Open) -> None:
    db = await handle(two.b)

    async def left(tx: Tx) -> bool:
        await ended_moves.purge(tx, 10)
        return bool(await tx.all("select id from owners where state = 'copying'"))

    async def begun(tx: Tx) -> None:
        await tx.run("insert into owners values ('o', 'copying', 'm', '', 0)")

    await db.write(begun)
    async with open_beside(place(two.b)):
        assert await db.write(left)
    async with open_beside(place(two.a)):
        assert not await db.write(left)


async def test_numbers_change_only_while_no_node_may_use_the_old_ones(
    two: Two, handle: Open
) -> None:
    """A release before schemas had names took the same numbers in all of them."""
    old = (7201966, 7201964, "carteiro_outbox")
    assert await (await handle(two.a)).read(names) == old
    db = await handle(two.b)
    own = await db.read(names)
    assert not set(own) & set(old)
    assert re.fullmatch(r"carteiro_outbox_[0-9a-f]{1,16}", own[2])

    async def as_before(tx: Tx) -> None:
        await tx.run("drop view own_locks")
        await tx.run(
            "insert into nodes (id, epoch, started_at, alive_until)"
            " values ('n', 1, 0, due_now() + 60000000)"
        )

    await db.apart("migration").write(as_before)
    for _ in range(2):
        assert await migrate(db, SOURCES) == []
        # Migrations alone: nodes of an earlier release do not run them beside this one.
        assert await db.read(names) == (old[0], own[1], old[2])

    async def stopped(tx: Tx) -> None:
        await tx.run("delete from nodes")

    await db.write(stopped)
    await migrate(db, SOURCES)
    assert await db.read(names) == own


async def test_a_node_of_another_database_is_not_here(
    url: str, postgres_server: PostgresServer
) -> None:
    async with AsyncExitStack() as stack:
        other = await postgres_server.fresh(ORDINARY)
        stack.push_async_callback(postgres_server.drop, other)
        here, there = await asyncpg.connect(url), await asyncpg.connect(other)
        for connection in (here, there):
            stack.push_async_callback(connection.close)
            await connection.execute(
                "insert into nodes (id, epoch, started_at, alive_until)"
                " values ('n', 1, 0, due_now() + 60000000)"
            )
        await there.fetchval(signals._HERE, "n")
        assert [row["id"] for row in await there.fetch(signals._NODES)] == ["n"]
        assert await here.fetch(signals._NODES) == []


async def test_what_an_overwrite_drops_has_every_function(url: str, handle: Open) -> None:
    db = await handle(url)
    there = await db.read(
        rows, "select proname from pg_proc where pronamespace = current_schema()::regnamespace"
    )
    assert {row["proname"] for row in there} <= created(SOURCES, "postgres")[1]
