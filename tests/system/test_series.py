"""The metrics page stays small after all operations, by all callers and in odd ways."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.series import run_every_operation


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("sqlite", marks=pytest.mark.slow),
        pytest.param("postgres", marks=pytest.mark.faults),
    ],
)
async def test_every_operation_in_every_way_keeps_the_page_in_its_budget(engine: Engine) -> None:
    told = await run_every_operation(engine)
    assert told["pass"], told
