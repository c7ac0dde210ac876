"""Name servers with faults: their webhooks fail by name, and nobody else waits."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.lookups import run_lookup_faults

SEED = 21260

pytestmark = [pytest.mark.faults, pytest.mark.timed, pytest.mark.timeout(300)]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_look_ups_that_fail_hold_up_nobody_else(engine: Engine) -> None:
    told = await run_lookup_faults(engine, SEED)
    assert told["pass"], told
