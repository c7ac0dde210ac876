"""Every call ends within ten seconds, whatever the server does; leases bypass a full pool."""

from __future__ import annotations

import asyncio
import socket

import asyncpg
import pytest

from outbox.database.index_plans import WHOLE_TABLES
from outbox.database.postgres import limits
from outbox.database.postgres.limits import REQUESTS
from outbox.database.transaction import Database, Tx
from outbox.errors import DatabaseUnavailable
from tests.outbox.database.postgres.conftest import Open
from tests.outbox.database.postgres.units import names, put, sleep
from tests.support.blackhole import black_hole_before
from tests.support.long_limits import served_limits
from tests.support.waiting import HANG_SECONDS, until

SETTINGS = (
    "lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout",
    "transaction_timeout",
)  # fmt: skip


async def refused(db: Database) -> str:
    """Run a write that fails; return its fault."""
    with pytest.raises(DatabaseUnavailable) as caught:
        await db.write(put, "refused")
    return caught.value.kind


async def test_each_purpose_has_its_limits(url: str, handle: Open) -> None:
    """The last one also ends a session which waits for the rest of a message."""

    async def current(tx: Tx) -> tuple[list[str], set[str]]:
        found = {
            row["name"]: row["value"]
            for row in await tx.all("select name, current_setting(name) as value from pg_settings")
        }
        return [found[name] for name in SETTINGS], {found[name] for name in WHOLE_TABLES}

    with served_limits():
        db = await handle(url)
        assert await db.write(current) == (["5s", "8s", "2s", "9s"], {"on"})
        assert await db.apart("drain").write(current) == (["1s", "8s", "2s", "4s"], {"off"})
        assert await db.apart("lease").read(current) == (["1s", "8s", "2s", "4s"], {"on"})
        assert await db.apart("migration").write(current) == (["0"] * 4, {"on"})
        times = REQUESTS.times(0.0)
        assert (times.body, times.commit, times.outcome) == (8.0, 9.0, 9.4)


async def test_a_full_pool_holds_up_neither_drain_nor_lease(
    url: str, handle: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = await handle(url, pool_size=2)

    async def asleep(tx: Tx) -> bool:
        row = await tx.one(
            "select count(*) as n from pg_stat_activity where wait_event = 'PgSleep'"
            " and datname = current_database()"
        )
        return row is not None and row["n"] == 2

    # Writes leave a connection to reads.
    full = [asyncio.create_task(run(sleep, HANG_SECONDS)) for run in (db.write, db.read)]
    await until(lambda: db.apart("lease").read(asleep))
    await db.apart("drain").write(put, "b")
    await db.apart("lease").write(put, "c")
    monkeypatch.setattr(limits, "ACQUIRE_SECONDS", 0.1)
    assert await refused(db) == "busy"
    assert not any(task.done() for task in full)
    for task in full:
        task.cancel()
    await asyncio.gather(*full, return_exceptions=True)


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


@pytest.mark.usefixtures("hasty")
async def test_a_silent_peer(url: str, handle: Open) -> None:
    """The peer accepts data and never replies."""
    async with black_hole_before(url) as way:
        db = await handle(way.url)
        await db.write(put, "a")
        way.darken()
        await asyncio.gather(refused(db), refused(db.apart("lease")))
        way.lighten()
        await db.write(put, "e")
        assert (await db.read(names))[-1] == "e"


async def test_a_socket_detects_a_lost_peer(url: str, handle: Open) -> None:
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
