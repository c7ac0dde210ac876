"""Tests tasks over HTTP: fields, verbs, and the lists by due date with a set clock."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.records.values import dates
from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.ids import Ids
from tests.support.rest import Person, RestApi


class Wall(SystemClock):
    """A wall clock that a test sets."""

    def __init__(self) -> None:
        self.micros = 0
        self.set("2026-11-21T15:00:00Z")

    def set(self, text: str) -> None:
        micros = dates.parse(text)
        assert micros is not None
        self.micros = micros

    def wall(self) -> int:
        return self.micros


@pytest.fixture
def wall() -> Wall:
    """A clock at noon of a Saturday in São Paulo (UTC-3)."""
    return Wall()


@pytest.fixture
async def db(db_url: str, wall: Wall) -> AsyncIterator[Database]:
    db = await database.open(db_url, clock=wall, ids=Ids(), serving=True)
    yield db
    await db.close()


async def create(who: Person, **body: Any) -> dict[str, Any]:
    reply = await who.post("/api/tasks", {"title": "Call"} | body)
    assert reply.status == 201, reply.text
    record: dict[str, Any] = reply.body
    return record


async def due(who: Person, *days: str) -> None:
    """Create a task for each due date, with the date as its title."""
    for day in days:
        await create(who, title=day, dueDate=day)


async def listed(who: Person, path: str) -> list[str]:
    """Return the titles in order, and assert that `total` counts all of them."""
    reply = await who.get(f"/api/tasks{path}")
    assert reply.status == 200, reply.text
    assert reply.body["total"] == len(reply.body["data"])
    return [task["title"] for task in reply.body["data"]]


async def test_a_verb_reads_no_body(api: RestApi, ana: Person) -> None:
    path = f"/api/tasks/{(await create(ana))['id']}"
    for verb in ("complete", "reopen"):
        for data in (None, b"", b"rubbish", b'{"completed":false}'):
            reply = await ana.call("POST", f"{path}/{verb}", data=data, Content_Type="text/plain")
            assert reply.status == 200
        assert (await ana.post(f"/api/tasks/overdue/{verb}")).status == 404
    assert [name for name, _ in await api.events()].count("task.completed") == 1


async def test_overdue_by_the_clock_and_by_the_day(ana: Person, wall: Wall) -> None:
    await due(
        ana, "2026-11-21T15:00:00.001Z", "2026-11-21", "2026-11-20T23:59:59Z",
        "2026-11-21T15:00:00Z", "2026-11-20", "2026-11-22", "2026-11-21T11:59:00-03:00",
    )  # fmt: skip
    await create(ana, title="without")
    done = await create(ana, title="done", dueDate="2020-01-01")
    await ana.post(f"/api/tasks/{done['id']}/complete")
    passed = ["2026-11-20", "2026-11-20T23:59:59Z", "2026-11-21T11:59:00-03:00"]
    assert await listed(ana, "/overdue") == passed
    # A task that is due exactly now is not overdue.
    wall.micros += 1
    assert (await listed(ana, "/overdue"))[-1] == "2026-11-21T15:00:00Z"
    # The day ends in São Paulo at 03:00Z.
    wall.set("2026-11-22T02:59:59.999Z")
    assert "2026-11-21" not in await listed(ana, "/overdue")
    wall.set("2026-11-22T03:00:00Z")
    assert "2026-11-21" in await listed(ana, "/overdue")
    assert await listed(ana, "/upcoming") == ["2026-11-22"]


async def test_a_day_ends_in_the_zone_of_its_owner(api: RestApi, ana: Person, wall: Wall) -> None:
    await due(ana, "2026-11-21")
    for zone, ends in (
        ("UTC", "2026-11-22T00:00:00Z"), ("Pacific/Kiritimati", "2026-11-21T10:00:00Z"),
        ("Pacific/Pago_Pago", "2026-11-22T11:00:00Z"), ("Asia/Kolkata", "2026-11-21T18:30:00Z"),
    ):  # fmt: skip
        await api.move(ana, zone)
        wall.set(ends)
        assert await listed(ana, "/overdue") == ["2026-11-21"], zone
        assert await listed(ana, "/upcoming") == []
        wall.micros -= 1
        assert await listed(ana, "/overdue") == []
        assert await listed(ana, "/upcoming") == ["2026-11-21"]


async def test_upcoming_is_from_now_to_seven_days_ahead(ana: Person) -> None:
    inside = [
        "2026-11-21", "2026-11-21T15:00:00Z", "2026-11-25", "2026-11-28", "2026-11-28T15:00:00Z",
    ]  # fmt: skip
    await due(
        ana, "2026-11-28T15:00:00.001Z", *reversed(inside), "2026-11-20", "2026-11-29",
        "2026-11-21T14:59:59.999Z", "2026-12-24",
    )  # fmt: skip
    assert await listed(ana, "/upcoming") == inside


async def test_a_returned_day_stays_a_day(ana: Person) -> None:
    task = await create(ana, dueDate="2026-11-21")
    path = f"/api/tasks/{task['id']}"
    assert (await ana.put(path, task)).headers["ETag"] == '"1"'
    finer = await create(ana, dueDate="2026-12-01T10:00:00.123456Z")
    assert (await ana.put(f"/api/tasks/{finer['id']}", finer)).headers["ETag"] == '"1"'
    assert await listed(ana, "/overdue") == []
    # Another instant is a change, and so is a day instead of it.
    assert (await ana.put(path, {"dueDate": "2026-11-21T00:00:01Z"})).status == 200
    assert await listed(ana, "/overdue") == ["Call"]
    await ana.put(path, {"dueDate": "2026-11-21T00:00:00Z"})
    assert await listed(ana, "/overdue") == ["Call"]
    await ana.put(path, {"dueDate": "2026-11-21"})
    assert await listed(ana, "/overdue") == []


CALENDAR = (
    "2026-10-31T23:59:59.999Z", "2026-11-01", "2026-11-15T12:00:00Z", "2026-11-30",
    "2026-11-30T23:59:59.999Z", "2026-12-01", "2026-12-01T00:00:00.001Z", "2026-12-02",
    "2027-01-01",
)  # fmt: skip


async def test_the_calendar(ana: Person, bia: Person) -> None:
    await due(ana, *CALENDAR)
    await create(ana, title="without")
    await due(bia, *CALENDAR)
    for query, expected in (
        ("", "12346"), ("?start=&end=", "12346"), ("?start=2026-11-01&end=2026-11-30", "12346"),
        ("?start=2026-11-01T00:00:00Z&end=2026-12-01T00:00:00Z", "1234"),
        ("?start=2026-11-30T23:59:59.999Z&end=2026-11-30T23:59:59.999Z", "34"),
        ("?start=2026-11-15&end=2026-11-15", "2"),
        ("?start=2026-11-15T09:00:00-03:00&end=2026-11-15T12:00:00Z", "2"),
        ("?start=2026-11-15T12:00:00 00:00&end=2026-11-15T12:00:00+00:00", "2"),
        ("?start=2026-11-01", "123456"), ("?start=2026-11-01T00:00:00Z", "123456"),
        ("?end=2026-11-30", "012346"), ("?end=2026-12-01", "123456"),
        ("?start=0001-01-01&end=9999-12-31", "012345678"), ("?start=9999-12-31", ""),
        ("?start=2026-12-01&end=2026-11-01", ""),
    ):  # fmt: skip
        found = await listed(ana, f"/calendar{query}")
        assert found == [CALENDAR[int(n)] for n in expected], query
