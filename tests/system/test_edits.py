"""R23: a change of a webhook holds from its return on, for requests that are queued too."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.support.faults import ENGINES, sizes
from tests.system.edits import run_deaf, run_edits


@pytest.mark.timed
@sizes("acts", small=10, large=150)
@ENGINES
async def test_no_request_of_the_old_settings_starts_after_a_change(
    engine: Engine, acts: int
) -> None:
    told = await run_edits(engine, seed=1, acts=acts)
    assert told["pass"], told


@pytest.mark.slow
@ENGINES
async def test_workers_that_hear_of_no_change_are_found(engine: Engine) -> None:
    told = await run_deaf(engine, seed=3)
    assert told["pass"], told
