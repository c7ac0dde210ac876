"""R17: rows past their time go beside writes, which stay quick, and nothing else goes."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.support.faults import LARGE
from tests.system.expiring import run_expiry

SEED = 17_260


@pytest.mark.timed
@pytest.mark.parametrize(
    ("engine", "rows"),
    [
        pytest.param("sqlite", 1_000_000, marks=LARGE),
        pytest.param("postgres", 200_000, marks=LARGE),
    ],
)
async def test_old_rows_expire_under_load(engine: Engine, rows: int) -> None:
    told = await run_expiry(engine, rows, SEED)
    assert told["pass"], told
