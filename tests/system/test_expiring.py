"""R17: rows past their time go beside writes, which stay quick, and nothing else goes."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.expiring import run_expiry

SEED = 17_260


@pytest.mark.faults
@pytest.mark.timed
@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_old_rows_expire_under_load(engine: Engine) -> None:
    told = await run_expiry(engine, 50_000, SEED)
    assert told["pass"], told
