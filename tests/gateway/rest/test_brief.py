"""Tests which write units SQLite runs on the event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from outbox.database.sqlite import SqliteDatabase
from outbox.database.transaction import is_brief
from outbox.queue.drain.cycle import (
    claim_due,
    fan_out_and_look,
    settle_and_look,
    settle_and_take,
    take,
)
from outbox.queue.drain.settle import settle
from tests.support.rest import Person


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Whether each unit that was written is brief, by its name."""
    found: dict[str, bool] = {}
    write = SqliteDatabase.write

    async def noting(
        self: SqliteDatabase, unit: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        found[unit.__name__] = is_brief(unit)
        return await write(self, unit, *args, **kwargs)

    monkeypatch.setattr(SqliteDatabase, "write", noting)
    return found


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_writes_of_the_rest_api_are_brief(seen: dict[str, bool], ana: Person) -> None:
    seen.clear()
    made = await ana.post("/api/tasks", {"title": "Call Maria"}, Idempotency_Key="k1")
    path = f"/api/tasks/{made.body['id']}"
    assert (await ana.put(path, {"title": "Call Ana"})).status == 200
    assert (await ana.post(f"{path}/complete")).status == 200
    names = {"create", "change", "complete"}
    assert {name: seen.get(name) for name in names} == dict.fromkeys(names, True)
    # A delete may reach many other records.
    assert (await ana.delete(path)).status == 200
    assert seen["plain"] is False


@pytest.mark.parametrize(
    "unit",
    [take, claim_due, settle_and_look, settle_and_take, fan_out_and_look, settle],
)
def test_units_of_the_drain_are_brief(unit: Callable[..., Awaitable[Any]]) -> None:
    assert is_brief(unit)
