"""Metrics, log and receivers agree on a run without a crash."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.counters import run_counters

SEED = 93260


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_attempts_are_counted_logged_and_received_once(engine: Engine) -> None:
    told = await run_counters(engine, SEED)
    assert told["pass"], told
