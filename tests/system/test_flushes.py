"""Flushes that fail or take long: no write is acknowledged before it is on the disk."""

from __future__ import annotations

from functools import partial

import pytest

from tests.support.engines import Engine
from tests.support.faults import ENGINES, shows, sizes
from tests.system.flushes import run_failed_flushes, run_slow_flush

SEED = 41260
HOPEFUL = "tests.system.hopeful_serve"


@sizes("flushes", large=8)
@ENGINES
async def test_a_write_whose_flush_failed_is_refused(engine: Engine, flushes: int) -> None:
    told = await run_failed_flushes(flushes, engine, SEED)
    assert told["pass"], told


@pytest.mark.faults
async def test_forgetting_a_failed_flush_is_seen() -> None:
    assert await shows(partial(run_failed_flushes, 3, "sqlite", module=HOPEFUL), SEED)


@pytest.mark.faults
@pytest.mark.timed
async def test_a_flush_of_two_seconds_holds_up_writes_alone() -> None:
    told = await run_slow_flush(SEED)
    assert told["pass"], told
