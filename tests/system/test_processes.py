"""Kill -9 of one of several processes: nothing is lost, and another takes over at once."""

from __future__ import annotations

import pytest

from tests.system.processes import run_process_kills

SEED = 90260
BROKEN = "tests.system.broken_serve"


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_two_kills_lose_nothing() -> None:
    told = await run_process_kills(2, SEED)
    assert told["pass"], told


@pytest.mark.faults
@pytest.mark.timeout(600)
async def test_ten_kills_lose_nothing() -> None:
    told = await run_process_kills(10, SEED + 1)
    assert told["pass"], told


@pytest.mark.faults
@pytest.mark.timeout(600)
async def test_settling_before_sending_is_seen() -> None:
    """The processes run the entry point of their supervisor, so this breaks all of them."""
    for seed in range(SEED, SEED + 3):
        if (await run_process_kills(3, seed, module=BROKEN))["lost"]:
            return
    pytest.fail("no kill lost anything: the runs above prove nothing")
