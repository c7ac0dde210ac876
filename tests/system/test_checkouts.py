"""The races of checkouts find each guard that is off."""

import pytest

from tests.support.engines import Engine
from tests.system.checkouts import GUARDS, ONE_WRITER, run_unguarded


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_a_guard_that_is_off_shows(engine: Engine, guard: str) -> None:
    if engine == "sqlite" and guard == ONE_WRITER:
        assert await run_unguarded(engine, guard, 2) == []
        return
    assert await run_unguarded(engine, guard, 5)
