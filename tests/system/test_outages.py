"""A receiver that is down gets probes, then its backlog; nobody else waits (R9)."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.support.faults import ENGINES, LARGE
from tests.system.outages import run_outage

SEED = 900


@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.timeout(300)
@ENGINES
async def test_a_receiver_that_is_down_gets_only_probes(engine: Engine) -> None:
    # Short, so most of the drain is the growth of the window.
    told = await run_outage(
        engine, SEED, seconds=6, quiet=6, rate=50.0, schedule="1,1,1,1", ratio=0.1
    )
    assert told["pass"], told


@pytest.mark.parametrize(
    ("engine", "seconds", "quiet"),
    [
        pytest.param("sqlite", 600.0, 120.0, marks=LARGE),
        pytest.param("postgres", 60.0, 60.0, marks=LARGE),
    ],
)
async def test_minutes_without_its_receiver(engine: Engine, seconds: float, quiet: float) -> None:
    told = await run_outage(engine, SEED, seconds=seconds, quiet=quiet)
    assert told["pass"], told


@pytest.mark.faults
@pytest.mark.timeout(300)
async def test_without_circuits_the_receiver_is_stormed() -> None:
    told = await run_outage(
        "sqlite", SEED, seconds=10, quiet=5, schedule="1,1,1,1,1,1,1,1,1",
        module="tests.system.undaunted_serve", ratio=0.0,
    )  # fmt: skip
    assert any("no probes" in finding for finding in told["findings"]), told
