"""A node of several processes serves and delivers on when one of them dies or stands still."""

from __future__ import annotations

import pytest

from tests.system.process_faults import CASES, faults_of, run_process_fault

SEED = 90410


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.parametrize("case", ["kill", "freeze"])
async def test_one_process_that_fails_does_not_stop_the_node(case: str) -> None:
    told = await run_process_fault(case, SEED, writes=100)
    assert not faults_of(told), told


@pytest.mark.faults
@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", CASES)
async def test_a_node_survives_the_faults_of_its_processes(case: str) -> None:
    told = await run_process_fault(case, SEED + 1)
    assert not faults_of(told), told
