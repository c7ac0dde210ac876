"""After a copy to PostgreSQL each waiting delivery goes out exactly once."""

from __future__ import annotations

from typing import Literal

import pytest

from tests.support.faults import sizes
from tests.system.copies import run_copy

SEED = 60260


@sizes("records, unseen", small=(5_000, 500), large=(100_000, 3_000))
@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_each_delivery_goes_out_once(
    end: Literal["stop", "kill"], records: int, unseen: int
) -> None:
    told = await run_copy(SEED, records=records, unseen=unseen, end=end)
    assert told["pass"], told
    assert told["states"]["ready"] > 50, told


@pytest.mark.faults
@pytest.mark.timeout(300)
async def test_an_old_file_that_still_serves_is_seen() -> None:
    told = await run_copy(SEED, records=1_000, unseen=200, careless=True)
    assert told["duplicated"] > 100, told
