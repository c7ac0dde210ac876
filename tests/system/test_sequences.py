"""Ordered webhooks while receivers refuse and processes die."""

from __future__ import annotations

from functools import partial

import pytest

from tests.support.engines import Engine
from tests.support.faults import ENGINES, shows, sizes
from tests.system.sequence_cost import run_cost
from tests.system.sequences import run_one_node, run_two_nodes

SEED = 40260
HASTY = "tests.system.hasty_serve"


@sizes("kills, records", large=(3, 200))
@ENGINES
async def test_each_record_keeps_its_order_when_the_process_is_killed(
    engine: Engine, kills: int, records: int
) -> None:
    told = await run_one_node(engine, kills, SEED, records=records)
    assert told["pass"], told


@sizes("kills, records", large=(3, 200))
async def test_each_record_keeps_its_order_on_two_nodes_of_which_one_is_killed(
    kills: int, records: int
) -> None:
    told = await run_two_nodes(kills, SEED, records=records)
    assert told["pass"], told


@pytest.mark.faults
@pytest.mark.timeout(300)
async def test_sending_without_a_look_at_the_head_loses_the_order() -> None:
    hasty = partial(run_two_nodes, 0, records=20, writes=5, module=HASTY)
    assert await shows(hasty, SEED, "disorder")


@pytest.mark.faults
@pytest.mark.timeout(600)
@ENGINES
async def test_the_order_has_its_price(engine: Engine) -> None:
    """It prints the price; no bar."""
    assert (await run_cost(engine))["pass"]
