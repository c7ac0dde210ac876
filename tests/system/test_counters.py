"""Metrics, log and receivers agree on a run without a crash."""

from __future__ import annotations

from tests.support.engines import Engine
from tests.support.faults import ENGINES, sizes
from tests.system.counters import run_counters

SEED = 93260


@sizes("writes", small=200, large=500)
@ENGINES
async def test_attempts_are_counted_logged_and_received_once(engine: Engine, writes: int) -> None:
    told = await run_counters(engine, SEED, writes=writes)
    assert told["pass"], told
