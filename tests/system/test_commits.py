"""PostgreSQL stops at the worst moments: nothing is written twice, nothing is lost."""

from __future__ import annotations

import pytest

from tests.system.commits import run_backend_kills, run_commit_cuts, run_database_crashes

SEED = 50260


@pytest.mark.slow
async def test_connections_cut_during_commit() -> None:
    told = await run_commit_cuts(4, SEED)
    assert told["pass"], told


@pytest.mark.faults
async def test_twenty_connections_cut_during_commit() -> None:
    told = await run_commit_cuts(20, SEED)
    assert told["pass"], told


@pytest.mark.faults
async def test_guessing_that_it_was_aborted_writes_twice() -> None:
    told = await run_commit_cuts(4, SEED, assume="aborted")
    assert told["unexpected"], told


@pytest.mark.faults
async def test_guessing_that_it_was_committed_loses() -> None:
    told = await run_commit_cuts(4, SEED, assume="committed")
    assert told["lost"], told


@pytest.mark.faults
async def test_backends_terminated() -> None:
    told = await run_backend_kills(20, SEED)
    assert told["pass"], told


@pytest.mark.faults
async def test_the_server_crashes() -> None:
    told = await run_database_crashes(20, SEED)
    assert told["pass"], told
