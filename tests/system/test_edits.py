"""R23: a change of a webhook holds from its return on, for requests that are queued too."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.edits import run_deaf, run_edits

ENGINES = pytest.mark.parametrize("engine", ["sqlite", "postgres"])


@pytest.mark.timed
@ENGINES
async def test_no_request_of_the_old_settings_starts_after_a_change(engine: Engine) -> None:
    told = await run_edits(engine, seed=1, acts=10)
    assert told["pass"], told


@pytest.mark.faults
@pytest.mark.timed
@pytest.mark.timeout(300)
@ENGINES
async def test_the_same_of_many_changes(engine: Engine) -> None:
    told = await run_edits(engine, seed=2, acts=150)
    assert told["pass"], told


@ENGINES
async def test_workers_that_hear_of_no_change_are_found(engine: Engine) -> None:
    told = await run_deaf(engine, seed=3)
    assert told["pass"], told
