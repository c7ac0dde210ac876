"""A node of several processes serves and delivers on when one of them dies or stands still."""

from __future__ import annotations

import pytest

from tests.support.faults import LARGE
from tests.system.process_faults import CASES, WRITES, faults_of, run_process_fault

SEED = 90410
DAILY = (pytest.mark.slow, pytest.mark.timeout(200))


@pytest.mark.parametrize(
    ("case", "writes"),
    [
        *(pytest.param(case, 100, id=f"{case}-small", marks=DAILY) for case in ("kill", "freeze")),
        *(pytest.param(case, WRITES, id=f"{case}-large", marks=LARGE) for case in CASES),
    ],
)
async def test_a_node_survives_the_faults_of_its_processes(case: str, writes: int) -> None:
    told = await run_process_fault(case, SEED, writes=writes)
    assert not faults_of(told), told
