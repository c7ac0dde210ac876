"""Very many waiting rows cost those who do not wait nothing."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.crowds import run_crowd

SEED = 16260

pytestmark = [pytest.mark.faults, pytest.mark.timed, pytest.mark.timeout(900)]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_rows_that_wait_delay_nobody(engine: Engine) -> None:
    told = await run_crowd(engine, SEED, rows=200_000)
    assert told["pass"], told
