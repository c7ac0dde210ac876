"""The reported outcome of a COMMIT is true while it runs (A1)."""

from __future__ import annotations

from tests.support.faults import sizes
from tests.system.fates import run_commit_race


@sizes("commits", large=20_000)
async def test_no_commit_is_judged_wrongly(commits: int) -> None:
    told = await run_commit_race(commits, seed=1)
    assert told["pass"], told
