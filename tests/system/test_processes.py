"""Kill -9 of one of several processes: nothing is lost, and another takes over at once."""

from __future__ import annotations

from functools import partial

import pytest

from tests.support.faults import shows, sizes
from tests.system.processes import run_process_kills

SEED = 90260
BROKEN = "tests.system.broken_serve"


@sizes("kills", small=2, large=10)
async def test_kills_lose_nothing(kills: int) -> None:
    told = await run_process_kills(kills, SEED)
    assert told["pass"], told


@pytest.mark.faults
@pytest.mark.timeout(600)
async def test_settling_before_sending_is_seen() -> None:
    """The processes run the entry point of their supervisor, so this breaks all of them."""
    assert await shows(partial(run_process_kills, 3, module=BROKEN), SEED)
