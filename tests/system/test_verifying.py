"""A log of some size: each change of it is found, and retention and erasure leave it whole."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.verifying import run_verify

SEED = 70261


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_each_change_of_a_log_is_found(engine: Engine) -> None:
    told = await run_verify(engine, 1_000, SEED)
    assert told["pass"], told
