"""SIGKILL at each system call of a delivery."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.steps import run_steps


@pytest.mark.faults
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_a_kill_at_each_system_call(engine: Engine) -> None:
    told = await run_steps(60, engine, 80260)
    assert told["pass"], told
