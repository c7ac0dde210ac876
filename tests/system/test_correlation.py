"""One search finds a request, its event and each attempt, also when the process is killed."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.support.faults import ENGINES, sizes
from tests.system.correlation import run_correlation

SEED = 2_026


@sizes("kills", small=1, large=10)
@ENGINES
async def test_one_search_finds_everything_across_kills(engine: Engine, kills: int) -> None:
    told = await run_correlation(kills, engine, SEED)
    assert told["pass"], told
    assert told["unfinished"] == 0
    assert told["exit"] == 0
    assert told["attempt_spans"] > 0


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_process_that_forgets_killed_attempts_is_seen() -> None:
    told = await run_correlation(2, "sqlite", SEED, module="tests.system.forgetful_serve")
    assert "line of an attempt" in told["findings"], told
