"""A restore replaces all data beside a cut-off server, which then serves what was restored."""

from __future__ import annotations

import pytest

from tests.system.overwrites import run_overwrite


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("early", [False, True])
async def test_a_server_that_was_cut_off_serves_what_was_restored(early: bool) -> None:
    told = await run_overwrite(1, early=early)
    assert told["pass"], told
