"""Writes without space: refused with 503, and no acknowledged write is lost."""

from __future__ import annotations

import pytest

from tests.system.space import run_batch_failures, run_disk_full, run_server_disk_full

SEED = 40260


@pytest.mark.slow
async def test_one_unit_of_a_batch_fails_and_the_others_stand() -> None:
    told = await run_batch_failures(20, SEED)
    assert told["pass"], told


@pytest.mark.faults
async def test_a_full_disk_refuses_writes_and_loses_nothing() -> None:
    told = await run_disk_full(SEED)
    assert told["pass"], told


@pytest.mark.faults
async def test_a_full_disk_of_the_server_is_not_ready() -> None:
    told = await run_server_disk_full(SEED)
    assert told["pass"], told
