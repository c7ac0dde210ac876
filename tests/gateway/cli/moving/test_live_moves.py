"""An owner moves between two servers while he and another owner write all the time."""

from __future__ import annotations

import asyncio

import pytest

from gateway.domain.contacts.companies import COMPANIES
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.draft import Draft
from outbox.database.postgres.guards import REFUSING
from outbox.database.transaction import Tx
from outbox.errors import OwnerElsewhere
from tests.gateway.cli.moving.test_live_deaths import STEPS, Pair, Step, pair, states
from tests.support.living import living
from tests.support.moved import run
from tests.support.movers import look, opened

__all__ = ["pair"]


async def _writes_late(pair: Pair, guarded: bool) -> None:
    """Write to the source as a process does that was frozen while the owner moved."""
    db = await opened(pair.house.url)
    try:
        await asyncio.to_thread(run, pair.house, pair.target, pair.keys)
        if not guarded:
            for table in REFUSING:
                await db.write(_without, table)
        owner = Actor(pair.house.mover, "api_key")
        draft = Draft({"name": "Lia"}, {"name": "Lia"})
        await db.write(actions.create, owner, COMPANIES, draft)
    finally:
        await db.close()


async def _without(tx: Tx, table: str) -> None:
    await tx.run(f"drop trigger gone on {table}")


def test_a_process_that_has_not_heard_writes_nothing_in_the_source(pair: Pair) -> None:
    with pytest.raises(OwnerElsewhere):
        asyncio.run(_writes_late(pair, guarded=True))
    assert asyncio.run(look(pair.house.url, pair.house.owners)).of(0) == {}


async def _dies(pair: Pair, which: int, steps: list[Step]) -> None:
    async with living(pair.house, pair.target, pair.keys) as life:
        await life.mover.until(20)
        for when, step, here, there in steps:
            status, said = await life.move(
                module=("tests.gateway.cli.moving.dying_move", when, step)
            )
            assert status == -9, said
            assert await states(pair) == [here, there], (when, step)
            await life.restart(which)
        status, said = await life.move()
        assert status == 0, said
        await life.mover.until(len(life.mover.made) + 20)
        assert life.mover.at == 1
    assert (await look(pair.house.url, pair.house.owners)).of(0) == {}


@pytest.mark.proof
@pytest.mark.timeout(600)
@pytest.mark.parametrize("which", [0, 1], ids=["source", "target"])
@pytest.mark.parametrize("steps", [STEPS[:9], STEPS[8:]], ids=["open", "closed"])
def test_the_command_and_a_server_are_killed_at_each_step(
    pair: Pair, which: int, steps: list[Step]
) -> None:
    asyncio.run(_dies(pair, which, steps))
