"""Two hundred writers on SQLite wait neither for a long reader nor for the checkpoint after it."""

from __future__ import annotations

import pytest

from tests.system.writers import run_locked, run_writers

SEED = 20_250

pytestmark = pytest.mark.faults


@pytest.mark.timed
@pytest.mark.timeout(600)
async def test_a_long_reader_holds_up_no_writer() -> None:
    told = await run_writers(SEED)
    assert told["pass"], told


@pytest.mark.timeout(300)
async def test_a_lock_that_reaches_clients_is_seen() -> None:
    told = await run_locked(SEED)
    assert told["refused"], told
    assert told["locked"], told
    assert told["p99_ms"] > 250, told
    assert (told["lost"], told["unexpected"]) == (0, 0), told
