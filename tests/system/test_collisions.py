"""Locks are taken in one order everywhere: no deadlock in ordinary running (A7)."""

from __future__ import annotations

import pytest

from tests.system.collisions import run_collisions


@pytest.mark.faults
@pytest.mark.timeout(300)
async def test_workers_and_owners_never_deadlock() -> None:
    told = await run_collisions(20.0, seed=1)
    assert told["pass"], told
