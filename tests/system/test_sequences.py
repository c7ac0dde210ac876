"""Ordered webhooks while receivers refuse and processes die: short forms of the proof's runs."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.sequences import run_one_node, run_two_nodes

SEED = 40260
HASTY = "tests.system.hasty_serve"

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_each_record_keeps_its_order_when_the_process_is_killed(engine: Engine) -> None:
    told = await run_one_node(engine, 2, SEED, records=40, writes=5)
    assert told["pass"], told


async def test_each_record_keeps_its_order_on_two_nodes_of_which_one_is_killed() -> None:
    told = await run_two_nodes(1, SEED, records=60, writes=5)
    assert told["pass"], told


async def test_sending_without_a_look_at_the_head_loses_the_order() -> None:
    told = await run_two_nodes(0, SEED, records=20, writes=5, module=HASTY)
    assert told["disorder"], told
    assert not told["pass"]
