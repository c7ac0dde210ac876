"""A big delete that is killed on its way completes; without its bound others are delayed."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.deletes import COMPANY, CONTACT, DELETES, Delete, run_delete

SEED = 20265
UNBOUNDED = "tests.system.unbounded_serve"

every_delete = pytest.mark.parametrize("delete", DELETES, ids=lambda delete: delete.name)


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("delete", "engine"), [(CONTACT, "sqlite"), (COMPANY, "postgres")], ids=["sqlite", "postgres"]
)
async def test_a_killed_delete_leaves_nothing_over(delete: Delete, engine: Engine) -> None:
    told = await run_delete(delete, engine, SEED, count=40_000, kills=1, seconds=1.0)
    assert not told["wrong"], told


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("sqlite", marks=pytest.mark.slow),
        pytest.param("postgres", marks=pytest.mark.faults),
    ],
)
async def test_a_delete_of_all_at_once_is_felt_by_others(engine: Engine) -> None:
    told = await run_delete(CONTACT, engine, SEED, kills=0, module=UNBOUNDED)
    assert not told["wrong"], told
    assert told["late"], told


@pytest.mark.faults
@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@every_delete
async def test_big_deletes_are_not_felt(delete: Delete, engine: Engine) -> None:
    told = await run_delete(delete, engine, SEED)
    assert told["pass"], told
