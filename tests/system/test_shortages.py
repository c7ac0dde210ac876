"""Too few descriptors, or too little memory: bounded refusals, and nothing is lost."""

from __future__ import annotations

from functools import partial

import pytest

from tests.support.engines import Engine
from tests.support.faults import ENGINES, shows
from tests.system.memory import run_memory_ends
from tests.system.shortages import run_few_descriptors

SEED = 27_250
THIRSTY = "tests.system.thirsty_serve"
ENDS = 5

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]


@ENGINES
async def test_with_few_descriptors_clients_are_refused_and_served_later(engine: Engine) -> None:
    told = await run_few_descriptors(engine, SEED)
    assert told["pass"], told


async def test_taking_all_descriptors_is_seen() -> None:
    assert await shows(partial(run_few_descriptors, "sqlite", module=THIRSTY), SEED)


@pytest.mark.timed
@ENGINES
async def test_an_end_for_memory_loses_nothing(engine: Engine) -> None:
    told = await run_memory_ends(ENDS, engine, SEED)
    assert told["pass"], told
