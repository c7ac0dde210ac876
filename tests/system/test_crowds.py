"""Very many waiting rows cost those who do not wait nothing (R16)."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.support.faults import ENGINES, sizes
from tests.system.crowds import run_crowd

SEED = 16260


@pytest.mark.timed
@sizes("rows", large=1_000_000)
@ENGINES
async def test_rows_that_wait_delay_nobody(engine: Engine, rows: int) -> None:
    told = await run_crowd(engine, SEED, rows=rows)
    assert told["pass"], told
