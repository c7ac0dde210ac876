"""The promises of the served document hold for thousands of generated requests."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.generated import EXCLUSIONS, run_generated_calls

SEED = 30413


@pytest.mark.faults
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_generated_calls(engine: Engine) -> None:
    """Thousands of calls take minutes, so they run with `make test-faults` and `make proof`."""
    told = await run_generated_calls(engine, SEED)
    assert told["pass"], (told["findings"], told["said"][-8000:])
    assert told["calls"] >= 2_000
    assert told["exclusions"] <= 5


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_answers_that_are_not_in_the_document_are_found() -> None:
    told = await run_generated_calls(
        "sqlite", SEED, examples=2, module="tests.system.undocumented_serve",
        only=("getMe", "getPipelineStats", "listOverdueTasks", "listUpcomingTasks"),
    )  # fmt: skip
    found = " ".join(told["findings"])
    assert "Undocumented status code: GET /api/me" in found, told
    assert "Response violates schema: GET /api/deals/pipeline-stats" in found
    assert "Server error: GET /api/tasks/overdue" in found
    assert "upcoming" not in found


def test_each_exclusion_says_why() -> None:
    assert len(EXCLUSIONS) <= 5
    assert all(": " in text and text.endswith(".") for text in EXCLUSIONS)
