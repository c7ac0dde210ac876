"""A backup under load is one moment, and continues as a new installation."""

from __future__ import annotations

from functools import partial

import pytest

from tests.support.engines import Engine
from tests.support.faults import ENGINES, LARGE, shows
from tests.system.backup_sizes import run_size
from tests.system.backups import run_backup_under_load

SEED = 50260
TORN = "tests.system.torn_backup"
MIB = 1_024
DAILY = (pytest.mark.slow, pytest.mark.timeout(240))


@pytest.mark.parametrize(
    ("engine", "on"),
    [
        pytest.param("sqlite", "postgres", marks=DAILY),
        pytest.param("postgres", "sqlite", marks=DAILY),
        pytest.param("sqlite", "sqlite", marks=LARGE),
        pytest.param("postgres", "postgres", marks=LARGE),
    ],
)
async def test_a_backup_under_load_restores_to_one_moment(engine: Engine, on: Engine) -> None:
    told = await run_backup_under_load(engine, on, SEED)
    assert told["pass"], told


@pytest.mark.proof
@pytest.mark.timeout(600)
@ENGINES
async def test_a_backup_without_a_snapshot_is_seen(engine: Engine) -> None:
    torn = partial(run_backup_under_load, engine, "sqlite", module=TORN)
    assert await shows(torn, SEED, "findings")


@pytest.mark.proof
@pytest.mark.timeout(1_800)
async def test_a_gibibyte_is_backed_up_and_restored_in_time() -> None:
    told = await run_size(MIB)
    assert told["pass"], told
