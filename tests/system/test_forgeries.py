"""Forged tokens sign nobody in, and with a guard off some of them do."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.system.forgeries import GUARDS, run_forgeries, run_unguarded

LEAST, LEAST_OF_A_KIND = 60, 4

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]


@ENGINES
async def test_forged_tokens_sign_nobody_in(engine: Engine) -> None:
    told = await run_forgeries(engine)
    assert told["pass"], told
    assert told["id_tokens"] >= LEAST
    for kinds in (told["id_tokens_by_kind"], told["session_tokens_by_kind"]):
        assert min(kinds.values()) >= LEAST_OF_A_KIND, kinds


@pytest.mark.parametrize("guard", GUARDS)
async def test_a_guard_that_is_off_is_seen(guard: str) -> None:
    assert await run_unguarded("sqlite", guard)
