"""Locks are taken in one order everywhere: no deadlock in ordinary running (A7)."""

from __future__ import annotations

from tests.support.faults import sizes
from tests.system.collisions import run_collisions


@sizes("seconds", large=300.0)
async def test_workers_and_owners_never_deadlock(seconds: float) -> None:
    told = await run_collisions(seconds, seed=1)
    assert told["pass"], told
