"""A backup under load is one moment, and continues as a new installation."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.backups import run_backup_under_load

SEED = 50260
TORN = "tests.system.torn_backup"


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(("engine", "on"), [("sqlite", "postgres"), ("postgres", "sqlite")])
async def test_a_backup_under_load_restores_to_one_moment(engine: Engine, on: Engine) -> None:
    told = await run_backup_under_load(engine, on, SEED)
    assert told["pass"], told


@pytest.mark.faults
@pytest.mark.timeout(240)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_a_backup_without_a_snapshot_is_seen(engine: Engine) -> None:
    told = [await run_backup_under_load(engine, "sqlite", SEED + n, module=TORN) for n in range(2)]
    assert not all(each["pass"] for each in told), told
