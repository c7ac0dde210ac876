"""An owner moves between two databases of PostgreSQL while others use them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import asyncpg
import pytest

from gateway.domain.contacts.companies import COMPANIES
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.record import Draft
from gateway.server.parts import Parts
from outbox.database.postgres.guards import REFUSING
from outbox.database.transaction import Tx
from outbox.errors import OwnerElsewhere
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
