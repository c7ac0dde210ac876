"""All hostile receivers at once: their attempts end by name, and nobody else waits.

tests/outbox/sending/test_receivers_hostile.py has them one at a time.
"""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.hostility import run_hostility

SEED = 71260

pytestmark = [pytest.mark.faults, pytest.mark.timed, pytest.mark.timeout(300)]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_all_hostile_receivers_at_once_hold_up_nobody_else(engine: Engine) -> None:
    told = await run_hostility(engine, SEED)
    assert told["pass"], told
