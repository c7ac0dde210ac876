"""What others notice of one owner at every limit at once: next to nothing (R40)."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.greedy import run_greedy


@pytest.mark.faults
@pytest.mark.timed
@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_an_owner_at_every_limit_holds_up_nobody(engine: Engine) -> None:
    told = await run_greedy(engine, seed=1)
    assert told["pass"], told
