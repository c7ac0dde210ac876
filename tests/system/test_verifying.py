"""A log of some size: each change of it is found, and retention and erasure leave it whole."""

from __future__ import annotations

from tests.support.engines import Engine
from tests.support.faults import ENGINES, sizes
from tests.system.verifying import run_verify

SEED = 70261


@sizes("attempts", small=1_000, large=100_000)
@ENGINES
async def test_each_change_of_a_log_is_found(engine: Engine, attempts: int) -> None:
    told = await run_verify(engine, attempts, SEED)
    assert told["pass"], told
