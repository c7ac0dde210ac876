"""PostgreSQL stops at the worst moments: nothing is written twice, nothing is lost."""

from __future__ import annotations

from functools import partial
from typing import Literal

import pytest

from tests.support.faults import shows, sizes
from tests.system.commits import run_backend_kills, run_commit_cuts, run_database_crashes

SEED = 50260


@sizes("cuts", small=4, large=20)
async def test_connections_cut_during_commit(cuts: int) -> None:
    told = await run_commit_cuts(cuts, SEED)
    assert told["pass"], told


@pytest.mark.faults
@pytest.mark.parametrize(("assume", "figure"), [("aborted", "unexpected"), ("committed", "lost")])
async def test_guessing_the_outcome_is_seen(
    assume: Literal["aborted", "committed"], figure: str
) -> None:
    assert await shows(partial(run_commit_cuts, 4, assume=assume), SEED, figure)


@pytest.mark.faults
async def test_backends_terminated() -> None:
    told = await run_backend_kills(20, SEED)
    assert told["pass"], told


@pytest.mark.faults
async def test_the_server_crashes() -> None:
    told = await run_database_crashes(20, SEED)
    assert told["pass"], told
