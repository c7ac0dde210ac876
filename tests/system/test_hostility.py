"""All hostile receivers at once: their attempts end by name, and nobody else waits.

tests/outbox/sending/test_receivers_hostile.py has them one at a time.
"""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.support.faults import ENGINES, sizes
from tests.system.hostility import run_hostility

SEED = 71260


@pytest.mark.timed
@sizes("seconds", large=300.0)
@ENGINES
async def test_all_hostile_receivers_at_once_hold_up_nobody_else(
    engine: Engine, seconds: float
) -> None:
    told = await run_hostility(engine, SEED, seconds=seconds)
    assert told["pass"], told
