"""The reported outcome of a COMMIT is true while it runs (A1)."""

from __future__ import annotations

import pytest

from tests.system.fates import run_commit_race


@pytest.mark.faults
@pytest.mark.timeout(300)
async def test_no_commit_is_judged_wrongly() -> None:
    told = await run_commit_race(2_000, seed=1)
    assert told["pass"], told
