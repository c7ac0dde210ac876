"""A unit that is one statement has no transaction around it, and its outcome is never guessed."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from outbox.database.deferred import Deferred
from outbox.database.postgres import groups
from outbox.database.postgres.groups import Groups, Turns
from outbox.database.postgres.limits import REQUESTS, Times
from outbox.database.transaction import Tx, alone
from outbox.errors import OutcomeUnknown
from tests.outbox.database.postgres.conftest import Open
from tests.outbox.database.postgres.test_groups import rows_of
from tests.support.waiting import until

INSERT = "insert into nodes values ($1, 1, 0, 0) returning id"
NAMES = "select id from nodes order by id"
WAITING = """
select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
"""


@alone
async def put(tx: Tx, name: str) -> str:
    [row] = await tx.all(INSERT, name)
    return str(row["id"])


async def test_one_whose_reply_is_lost_is_over_when_it_is_unknown(url: str, handle: Open) -> None:
    db, other = (await handle(url)).apart("drain"), await asyncpg.connect(url)
    beside = await asyncpg.connect(url)
    async with other.transaction():
        await other.execute("insert into nodes values ('one', 1, 0, 0)")
        waits = asyncio.create_task(db.write(put, "one"))
        await until(lambda: beside.fetchval(WAITING))
        await beside.execute(f"select pg_terminate_backend(pid) from ({WAITING}) as waiting")
        with pytest.raises(OutcomeUnknown):
            await waits
        await other.execute("delete from nodes")
    assert await beside.fetch(NAMES) == []
    await other.close()
    await beside.close()


async def test_many_writes_let_the_turn_of_the_drain_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else, where requests come as fast as they are answered, deliveries fall behind."""
    monkeypatch.setattr(groups, "TURN_SECONDS", 60.0)
    turns, sizes = Turns(), list[int]()

    async def write(rows: Deferred, _: Times) -> None:
        sizes.append(len(rows.rows))

    queue, times = Groups(write, turns), REQUESTS.times(asyncio.get_running_loop().time())
    with turns:
        assert await queue.write(rows_of("alone"), times)
        many = [
            asyncio.create_task(queue.write(rows_of(str(number)), times))
            for number in range(groups.MANY)
        ]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (len(sizes), any(one.done() for one in many)) == (1, False)
    assert all(await asyncio.gather(*many))
