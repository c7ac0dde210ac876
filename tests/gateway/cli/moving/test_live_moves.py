"""An owner moves between two databases of PostgreSQL while others use them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import asyncpg
import pytest

from gateway.cli.moving import live_copy
from gateway.cli.moving.live_copy import LiveCopy
from gateway.domain.contacts.companies import COMPANIES
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.record import Draft
from gateway.server.parts import Parts
from outbox.database.postgres.guards import REFUSING
from outbox.database.transaction import Tx
from outbox.errors import OwnerElsewhere
from tests.gateway.cli.moving.dying_move import ending
from tests.gateway.cli.moving.test_deaths import LIVE_STEPS
from tests.support.living import living
from tests.support.moved import Pair, run
from tests.support.movers import look, opened


async def _writes_late(pair: Pair) -> None:
    """Write to the source as a process does that was frozen while the owner moved."""
    db = await opened(pair.house.url)
    try:
        await asyncio.to_thread(run, pair)
        owner, draft = Actor(pair.house.mover, "api_key"), Draft({"name": "Lia"}, {"name": "Lia"})
        with pytest.raises(OwnerElsewhere):
            await db.write(actions.create, owner, COMPANIES, draft)
        left = await look(pair.house.url, pair.house.owners)
        assert left.of(0) == {}
        # It is the triggers that refuse: without them it would write what nobody finds.
        for table in REFUSING:
            await db.write(_without, table)
        await db.write(actions.create, owner, COMPANIES, draft)
    finally:
        await db.close()


async def _without(tx: Tx, table: str) -> None:
    await tx.run(f"drop trigger gone on {table}")


def test_a_process_that_has_not_heard_writes_nothing_in_the_source(pair: Pair) -> None:
    asyncio.run(_writes_late(pair))
    assert pair.source().of(0)["companies"] == 1


async def _locked(pair: Pair) -> None:
    connection = await asyncpg.connect(pair.house.url)
    async with connection.transaction():
        await connection.execute("lock table contacts in access exclusive mode")
        said = await asyncio.to_thread(run, pair, status=1, parts=Parts(lock_tries=2))
        assert "other transactions hold their locks for long; try again" in said
    await connection.close()


def test_locks_of_others_are_not_waited_for_without_end(pair: Pair) -> None:
    asyncio.run(_locked(pair))
    run(pair)
    assert pair.states() == ["gone", "here"]


BEFORE_DELIVERIES = """
select (select count(*) from webhooks where owner_id = $1)
  + (select count(*) from lanes where owner_id = $1)
  + (select count(*) from events where owner_id = $1 and seq is not null)
"""
NUMBERED = """
update deliveries set sequence = n.number from (
  select id, 1000 + row_number() over (order by id) as number
  from deliveries where owner_id = $1) as n
where deliveries.id = n.id
"""
SEQUENCE = "update deliveries set sequence = $2 where id = $1"


async def _pages(pair: Pair) -> int:
    """Number the mover's deliveries; return how many rows come before the second half of them."""
    connection = await asyncpg.connect(pair.house.url)
    numbered: str = await connection.execute(NUMBERED, pair.house.mover)
    before: int = await connection.fetchval(BEFORE_DELIVERIES, pair.house.mover)
    await connection.close()
    return before + int(numbered.split()[1]) // 2


async def _passed_on(pair: Pair) -> tuple[str, int]:
    """Give the number of a delivery that is copied to one that is not; return this one."""
    there = await asyncpg.connect(pair.target)
    copied = await there.fetch(
        "select id, webhook_id, sequence from deliveries where owner_id = $1", pair.house.mover
    )
    await there.close()
    here = await asyncpg.connect(pair.house.url)
    left = await here.fetch(
        "select id, webhook_id from deliveries where owner_id = $1 and id <> all ($2)",
        pair.house.mover, [row["id"] for row in copied],
    )  # fmt: skip
    first, then = next(
        (one, two) for one in copied for two in left if one["webhook_id"] == two["webhook_id"]
    )
    await here.execute(SEQUENCE, first["id"], None)
    await here.execute(SEQUENCE, then["id"], first["sequence"])
    await here.close()
    return then["id"], first["sequence"]


def test_a_row_that_takes_the_place_of_a_copied_one_is_copied_later(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_copy, "CHUNK", 1)
    passed: list[tuple[str, int]] = []

    def change() -> None:
        with ThreadPoolExecutor() as pool:
            passed.append(pool.submit(asyncio.run, _passed_on(pair)).result())

    with ending("after", f"_page.{asyncio.run(_pages(pair))}", change):
        run(pair)
    assert pair.states() == ["gone", "here"]
    [(delivery, sequence)] = passed

    async def moved() -> int | None:
        connection = await asyncpg.connect(pair.target)
        number: int | None = await connection.fetchval(
            "select sequence from deliveries where id = $1", delivery
        )
        await connection.close()
        return number

    assert asyncio.run(moved()) == sequence


REPLACED = """
create sequence replaced;
create function replaced() returns trigger language plpgsql as $$
begin
  if pg_trigger_depth() = 1 then perform nextval('replaced'); end if;
  return null;
end $$;
create trigger replaced after delete on deal_totals for each statement execute function replaced()
"""
TIMES = "select last_value from replaced where is_called"
DEARER = "update deals set value = value + 1 where owner_id = $1"
TOTALS = "select sum(n) as n, sum(value) as value from deal_totals where owner_id = $1"
PAIR = """
select min(id) as first, max(id) as last from deliveries
where owner_id = $1 and sequence is not null group by webhook_id having count(*) > 1 limit 1
"""
NUMBER = "select sequence from deliveries where id = $1"


async def _changed(pair: Pair) -> tuple[str, int, Sequence[int]]:
    """Let a delivery have the number of another one, and change deals meanwhile."""
    there = await asyncpg.connect(pair.target)
    await there.execute(REPLACED)
    await there.close()
    here, mover = await asyncpg.connect(pair.house.url), pair.house.mover
    row = await here.fetchrow(PAIR, mover)
    number = await here.fetchval(NUMBER, row["first"])
    await here.execute(SEQUENCE, row["last"], None)
    await here.execute(DEARER, mover)
    await here.execute(SEQUENCE, row["first"], None)
    await here.execute(SEQUENCE, row["last"], number)
    await here.execute(DEARER, mover)
    totals = await here.fetchrow(TOTALS, mover)
    await here.close()
    return row["last"], number, list(totals)


def test_many_changes_are_copied_in_parts_that_fit(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, int, Sequence[int]]] = []
    parts = LiveCopy.parts

    async def meanwhile(copying: LiveCopy) -> int:
        if not done:
            done.append(await _changed(pair))
        return await parts(copying)

    monkeypatch.setattr(live_copy, "PART", 1)
    monkeypatch.setattr(LiveCopy, "parts", meanwhile)
    run(pair)
    assert pair.states() == ["gone", "here"]
    [(delivery, number, totals)] = done

    async def moved() -> tuple[int, Sequence[int], int]:
        there = await asyncpg.connect(pair.target)
        row = await there.fetchrow(TOTALS, pair.house.mover)
        values = await there.fetchval(NUMBER, delivery), list(row), await there.fetchval(TIMES)
        await there.close()
        return values

    # The totals are replaced once, not with each part.
    assert asyncio.run(moved()) == (number, totals, 1)


async def _dies(pair: Pair, which: int, steps: Sequence[tuple[str, str, str, str]]) -> None:
    async with living(pair) as life:
        await life.mover.until(20)
        for when, step, here, there in steps:
            status, said = await life.move(
                module=("tests.gateway.cli.moving.dying_move", when, step)
            )
            assert status == -9, said
            assert await asyncio.to_thread(pair.states) == [here, there], (when, step)
            await life.restart(which)
        status, said = await life.move()
        assert status == 0, said
        await life.mover.until(len(life.mover.made) + 20)
        assert life.mover.at == 1
    assert (await look(pair.house.url, pair.house.owners)).of(0) == {}


@pytest.mark.proof
@pytest.mark.timeout(600)
@pytest.mark.parametrize("which", [0, 1], ids=["source", "target"])
@pytest.mark.parametrize("steps", [LIVE_STEPS[:9], LIVE_STEPS[8:]], ids=["open", "closed"])
def test_the_command_and_a_server_are_killed_at_each_step(
    pair: Pair, which: int, steps: Sequence[tuple[str, str, str, str]]
) -> None:
    asyncio.run(_dies(pair, which, steps))
