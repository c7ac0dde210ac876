"""Every call ends within ten seconds, whatever the server does; leases bypass a full pool."""

from __future__ import annotations

import asyncio
import time

import asyncpg
import pytest

from outbox.database.plans import WHOLE_TABLES
from outbox.database.transaction import Database, Patience, Tx, patience
from outbox.errors import DatabaseUnavailable
from tests.outbox.database.postgres.conftest import Open
from tests.outbox.database.postgres.units import names, put, sleep
from tests.support.blackhole import black_hole_before

pytestmark = pytest.mark.timed

ANSWER_SECONDS = 10.0


async def refused(db: Database, name: str) -> tuple[str, float]:
    """Run a write that fails; return its fault and the seconds it took."""
    began = time.monotonic()
    with pytest.raises(DatabaseUnavailable) as caught:
        await db.write(put, name)
    return caught.value.kind, time.monotonic() - began


@pytest.mark.slow
async def test_a_locked_table(url: str, handle: Open) -> None:
    db = await handle(url)
    holder = await asyncpg.connect(url)
    await holder.execute("begin; lock table nodes in access exclusive mode")
    answers = await asyncio.gather(
        refused(db, "a"), refused(db.apart("drain"), "b"), refused(db.apart("lease"), "c")
    )
    assert [kind for kind, _ in answers] == ["busy", "busy", "busy"]
    api, drain, lease = (seconds for _, seconds in answers)
    assert 4.5 < api < 8
    assert drain < 3
    assert lease < 3
    await holder.execute("rollback")
    await db.write(put, "d")
    await holder.close()


@pytest.mark.slow
async def test_all_units_of_one_request_share_its_ten_seconds(url: str, handle: Open) -> None:
    db = await handle(url)
    holder = await asyncpg.connect(url)
    await holder.execute("begin; lock table nodes in access exclusive mode")
    waited = Patience()
    patience.set(waited)
    began = time.monotonic()
    for number in range(5):
        kind, _ = await refused(db, str(number))
        assert kind == "busy"
    assert time.monotonic() - began < ANSWER_SECONDS
    assert 8 <= waited.spent < ANSWER_SECONDS
    await holder.execute("rollback")
    await holder.close()


async def test_a_transaction_ends_whatever_its_peer_does(url: str, handle: Open) -> None:
    """The limit that also ends a session which waits for the rest of a message."""
    db = await handle(url)

    async def limit(tx: Tx) -> str:
        row = await tx.one("select current_setting('transaction_timeout') as seconds")
        assert row is not None
        return str(row["seconds"])

    assert await db.write(limit) == "9s"
    assert await db.apart("drain").write(limit) == "4s"
    assert await db.apart("lease").write(limit) == "4s"
    assert await db.apart("migration").write(limit) == "0"


@pytest.mark.slow
async def test_a_statement_that_takes_too_long(url: str, handle: Open) -> None:
    db = await handle(url)
    began = time.monotonic()
    with pytest.raises(DatabaseUnavailable):
        await db.write(sleep, 30.0)
    assert time.monotonic() - began < ANSWER_SECONDS


async def test_a_migration_has_no_time_limit(url: str, handle: Open) -> None:
    db = await handle(url)

    async def limits(tx: Tx) -> list[str]:
        found = []
        for name in (
            "lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout",
        ):  # fmt: skip
            row = await tx.one("select current_setting($1) as value", name)
            assert row is not None
            found.append(row["value"])
        return found

    assert await db.apart("migration").write(limits) == ["0", "0", "0"]
    assert await db.write(limits) == ["5s", "8s", "2s"]
    assert await db.apart("drain").write(limits) == ["1s", "8s", "2s"]
    assert await db.apart("lease").read(limits) == ["1s", "8s", "2s"]


async def test_only_the_drain_must_use_indexes(url: str, handle: Open) -> None:
    db = await handle(url)

    async def settings(tx: Tx) -> set[str]:
        statement = "select setting from pg_settings where name = any ($1)"
        rows = await tx.all(statement, [*WHOLE_TABLES])
        assert len(rows) == len(WHOLE_TABLES)
        return {row["setting"] for row in rows}

    assert await db.apart("drain").write(settings) == {"off"}
    assert await db.write(settings) == await db.apart("lease").read(settings) == {"on"}


@pytest.mark.slow
async def test_a_full_pool_holds_up_neither_drain_nor_lease(url: str, handle: Open) -> None:
    db = await handle(url, pool_size=2)
    # Writes leave a connection to reads.
    full = [asyncio.create_task(run(sleep, 7.5)) for run in (db.write, db.read)]
    await asyncio.sleep(0.2)
    waiting = asyncio.create_task(refused(db, "a"))
    began = time.monotonic()
    await db.apart("drain").write(put, "b")
    await db.apart("lease").write(put, "c")
    assert time.monotonic() - began < 1
    kind, seconds = await waiting
    assert (kind, seconds < 7) == ("busy", True)
    await asyncio.gather(*full)


async def test_scans_leave_two_thirds_of_the_pool(url: str, handle: Open) -> None:
    db = await handle(url, pool_size=3)
    running = 0
    most = 0
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def scan(tx: Tx) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        begun.set()
        await go_on.wait()
        running -= 1

    scans = [asyncio.create_task(db.scan("ana", scan)) for _ in range(4)]
    async with asyncio.timeout(5):
        await begun.wait()
        await asyncio.gather(db.read(names), db.write(put, "a"))
    go_on.set()
    await asyncio.gather(*scans)
    assert most == 1


@pytest.mark.slow
async def test_a_silent_peer(url: str, handle: Open) -> None:
    """The peer accepts data and never replies."""
    async with black_hole_before(url) as way:
        db = await handle(way.url)
        await db.write(put, "a")
        way.darken()
        answers = await asyncio.gather(
            refused(db, "b"), refused(db, "c"), refused(db.apart("lease"), "d")
        )
        assert max(seconds for _, seconds in answers) < ANSWER_SECONDS
        way.lighten()
        await db.write(put, "e")
        assert (await db.read(names))[-1] == "e"


async def test_a_socket_detects_a_lost_peer(url: str, handle: Open) -> None:
    import socket

    async with black_hole_before(url) as way:
        db = await handle(way.url)
        found = {}

        async def look(tx: Tx) -> None:
            connection = tx._connection  # type: ignore[attr-defined]
            sock = connection._transport.get_extra_info("socket")
            found["alive"] = sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            found["idle"] = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
            found["unheard"] = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)

        await db.read(look)
        assert found == {"alive": 1, "idle": 2, "unheard": 5000}


@pytest.mark.slow
async def test_a_node_that_stood_still_lost_its_locks_and_runs_again(
    url: str, handle: Open
) -> None:
    db = await handle(url)
    runs = 0

    async def stalled(tx: Tx) -> int:
        nonlocal runs
        runs += 1
        await put(tx, "a")
        if runs == 1:
            # The whole process stands still, as when it is frozen.
            time.sleep(2.5)
        return runs

    assert await db.write(stalled) == 2
    assert await db.read(names) == ["a"]


async def test_a_statement_with_a_stale_plan_runs_again(url: str, handle: Open) -> None:
    db = await handle(url, pool_size=2)

    async def nodes(tx: Tx) -> list[str]:
        row = await tx.one("select * from nodes where id = 'a'")
        assert row is not None
        return list(row.keys())

    await db.write(put, "a")
    before = await asyncio.gather(*(db.read(nodes) for _ in range(2)))
    beside = await asyncpg.connect(url)
    await beside.execute("alter table nodes add column colour text")
    await beside.close()
    after = await asyncio.gather(*(db.read(nodes) for _ in range(2)), db.write(nodes))
    assert after == [[*before[0], "colour"]] * 3
