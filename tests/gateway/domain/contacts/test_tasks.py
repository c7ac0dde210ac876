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

NOWHERE = "0" * 24


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


async def test_only_the_verbs_complete(ana: Person) -> None:
    body = {"title": "X", "completed": True, "completedAt": "2026-01-01"}
    created = await ana.post("/api/tasks", body)
    updated = await ana.put(f"/api/tasks/{created.body['id']}", body)
    for reply in (created, updated):
        assert reply.headers["X-Ignored-Fields"] == "completed, completedAt"
        assert reply.body["completed"] is False
        assert "completedAt" not in reply.body


async def test_completing_and_reopening(api: RestApi, ana: Person, wall: Wall) -> None:
    task = await create(ana, dueDate="2026-11-22")
    path = f"/api/tasks/{task['id']}"
    wall.set("2026-11-21T16:00:00Z")
    done = await ana.post(f"{path}/complete")
    at = "2026-11-21T16:00:00.000Z"
    assert (done.status, done.headers["ETag"]) == (200, '"2"')
    assert done.body == task | {"completed": True, "completedAt": at, "updatedAt": at}
    wall.set("2026-11-21T17:00:00Z")
    for again in (await ana.post(f"{path}/complete"), await ana.get(path)):
        assert (again.status, again.headers["ETag"], again.body) == (200, '"2"', done.body)
    # A change keeps a completed task completed.
    assert (await ana.put(path, {"title": "Y"})).body["completedAt"] == at
    reopened = await ana.post(f"{path}/reopen")
    assert (reopened.status, reopened.body["completed"]) == (200, False)
    assert "completedAt" not in reopened.body
    assert (await ana.post(f"{path}/reopen")).text == reopened.text
    twice = await ana.post(f"{path}/complete")
    assert twice.body["completedAt"] == "2026-11-21T17:00:00.000Z"
    await ana.delete(path)
    assert await api.events() == [
        ("task.created", {
            "id": task["id"], "title": "Call", "dueDate": "2026-11-22T00:00:00.000Z",
            "priority": "medium", "createdAt": "2026-11-21T15:00:00.000Z",
        }),
        ("task.completed", {"id": task["id"], "title": "Call", "completedAt": at}),
        ("task.completed", {
            "id": task["id"], "title": "Y", "completedAt": "2026-11-21T17:00:00.000Z",
        }),
        ("task.deleted", {"id": task["id"]}),
    ]  # fmt: skip


@pytest.mark.parametrize("verb", ["complete", "reopen"])
async def test_a_verb_reads_no_body(api: RestApi, ana: Person, verb: str) -> None:
    path = f"/api/tasks/{(await create(ana))['id']}/{verb}"
    for data in (None, b"", b"rubbish", b'{"completed":false}'):
        reply = await ana.call("POST", path, data=data, Content_Type="text/plain")
        assert reply.status == 200
    assert [name for name, _ in await api.events()].count("task.completed") == (verb == "complete")
    assert (await ana.post(f"/api/tasks/overdue/{verb}")).status == 404


async def test_a_key_replays_a_verb(api: RestApi, ana: Person) -> None:
    path = f"/api/tasks/{(await create(ana))['id']}"
    first = await ana.post(f"{path}/complete", Idempotency_Key="k")
    await ana.post(f"{path}/reopen", Idempotency_Key="k")
    again = await ana.post(f"{path}/complete", Idempotency_Key="k")
    assert (again.status, again.text) == (200, first.text)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.headers["ETag"] == first.headers["ETag"]
    assert (await ana.get(path)).body["completed"] is False
    assert [name for name, _ in await api.events()] == ["task.created", "task.completed"]
    other = await ana.post(f"{path}/complete", {"x": 1}, Idempotency_Key="k")
    assert (other.status, other.body["code"]) == (422, "idempotency_mismatch")


async def test_filters_and_sorting(ana: Person, bia: Person) -> None:
    maria = (await ana.post("/api/contacts", {"name": "Maria"})).body["id"]
    deal = (await ana.post("/api/deals", {"title": "D", "value": 1})).body["id"]
    a = await create(ana, title="a", priority="low", contactId=maria, dueDate="2026-12-05")
    await create(ana, title="b", dealId=deal)
    await create(ana, title="c", priority="high", contactId=maria, dueDate="2026-11-05")
    await create(bia, title="theirs")
    await ana.post(f"/api/tasks/{a['id']}/complete")
    for query, expected in {
        "": "abc", "completed=true": "a", "completed=false": "bc", "completed=yes": "",
        "completed=1": "", "priority=low": "a", "priority=LOW": "", f"contactId={maria}": "ac",
        f"contactId={maria}&completed=false": "c", f"dealId={deal}": "b", "dealId=x": "",
        f"ids={a['id']}": "a", "sort=dueDate": "cab", "sort=-dueDate": "bac",
        "sort=dueDate&priority=low": "a",
    }.items():  # fmt: skip
        names = await listed(ana, f"?{query}")
        assert (names if "sort" in query else sorted(names)) == list(expected), query
    assert (await ana.get("/api/tasks?sort=priority")).status == 400


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


@pytest.mark.parametrize(
    ("zone", "ends"),
    [
        ("UTC", "2026-11-22T00:00:00Z"),
        ("Pacific/Kiritimati", "2026-11-21T10:00:00Z"),
        ("Pacific/Pago_Pago", "2026-11-22T11:00:00Z"),
        ("Asia/Kolkata", "2026-11-21T18:30:00Z"),
    ],
)
async def test_a_day_ends_in_the_zone_of_its_owner(
    api: RestApi, ana: Person, wall: Wall, zone: str, ends: str
) -> None:
    await api.move(ana, zone)
    await due(ana, "2026-11-21")
    wall.set(ends)
    assert await listed(ana, "/overdue") == ["2026-11-21"]
    assert await listed(ana, "/upcoming") == []
    wall.micros -= 1
    assert await listed(ana, "/overdue") == []
    assert await listed(ana, "/upcoming") == ["2026-11-21"]


async def test_upcoming_is_from_now_to_seven_days_ahead(ana: Person, wall: Wall) -> None:
    inside = [
        "2026-11-21", "2026-11-21T15:00:00Z", "2026-11-25", "2026-11-28", "2026-11-28T15:00:00Z",
    ]  # fmt: skip
    await due(
        ana, "2026-11-28T15:00:00.001Z", *reversed(inside), "2026-11-20", "2026-11-29",
        "2026-11-21T14:59:59.999Z", "2026-12-24",
    )  # fmt: skip
    done = await create(ana, title="done", dueDate="2026-11-22")
    await ana.post(f"/api/tasks/{done['id']}/complete")
    assert await listed(ana, "/upcoming") == inside
    # At 01:00Z it is still the previous day in São Paulo.
    wall.set("2026-11-22T01:00:00Z")
    days = await listed(ana, "/upcoming")
    assert ("2026-11-21" in days, "2026-11-28" in days, "2026-11-29" in days) == (
        True, True, False,
    )  # fmt: skip


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


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "12346"),
        ("?start=&end=", "12346"),
        ("?start=2026-11-01&end=2026-11-30", "12346"),
        ("?start=2026-11-01T00:00:00Z&end=2026-12-01T00:00:00Z", "1234"),
        ("?start=2026-11-30T23:59:59.999Z&end=2026-11-30T23:59:59.999Z", "34"),
        ("?start=2026-11-15&end=2026-11-15", "2"),
        ("?start=2026-11-15T09:00:00-03:00&end=2026-11-15T12:00:00Z", "2"),
        ("?start=2026-11-15T12:00:00 00:00&end=2026-11-15T12:00:00+00:00", "2"),
        ("?start=2026-11-01", "123456"),
        ("?start=2026-11-01T00:00:00Z", "123456"),
        ("?end=2026-11-30", "012346"),
        ("?end=2026-12-01", "123456"),
        ("?start=0001-01-01&end=9999-12-31", "012345678"),
        ("?start=9999-12-31", ""),
        ("?start=2026-12-01&end=2026-11-01", ""),
        ("?start=soon&end=2026-11-30", ""),
        ("?start=2026-11-01&end=2026-02-30", ""),
        ("?end=x", ""),
    ],
)
async def test_the_calendar(ana: Person, bia: Person, query: str, expected: str) -> None:
    await due(ana, *CALENDAR)
    await create(ana, title="without")
    await due(bia, *CALENDAR)
    assert await listed(ana, f"/calendar{query}") == [CALENDAR[int(n)] for n in expected]


async def test_the_calendar_includes_done_tasks_and_uses_the_owners_month(
    ana: Person, wall: Wall
) -> None:
    wall.set("2026-12-01T02:59:59Z")
    await due(ana, "2026-11-30", "2026-12-01")
    for task in (await ana.get("/api/tasks")).body["data"]:
        await ana.post(f"/api/tasks/{task['id']}/complete")
    assert await listed(ana, "/calendar") == ["2026-11-30"]
    wall.set("2026-12-01T03:00:00Z")
    assert await listed(ana, "/calendar") == ["2026-12-01"]


@pytest.mark.parametrize(
    ("zone", "begins", "ends"),
    [
        ("America/Sao_Paulo", "2026-11-15T03:00:00Z", "2026-11-16T02:59:59.999Z"),
        ("Pacific/Kiritimati", "2026-11-14T10:00:00Z", "2026-11-15T09:59:59.999Z"),
        ("Pacific/Pago_Pago", "2026-11-15T11:00:00Z", "2026-11-16T10:59:59.999Z"),
    ],
)
async def test_a_day_of_the_calendar_is_in_the_owners_time_zone(
    api: RestApi, ana: Person, zone: str, begins: str, ends: str
) -> None:
    await api.move(ana, zone)
    await due(ana, begins, ends, "2026-11-14", "2026-11-15", "2026-11-16")
    for query in ("start=2026-11-15&end=2026-11-15", f"start={begins}&end={ends}"):
        days = await listed(ana, f"/calendar?{query}")
        assert sorted(days) == sorted([begins, "2026-11-15", ends])
    shorter = (dates.parse(begins) or 0) + 1000
    assert begins not in await listed(ana, f"/calendar?start={dates.show(shorter)}&end={ends}")


@pytest.mark.parametrize("path", ["overdue", "calendar?start=2026-11-01&end=2026-11-20"])
async def test_lists_by_date_are_complete(ana: Person, path: str) -> None:
    await due(ana, *(f"2026-11-{day:02d}T10:00:00Z" for day in range(12, 0, -1)))
    join = "&" if "?" in path else "?"
    pages = [await ana.get(f"/api/tasks/{path}{join}limit=5&page={page}") for page in range(1, 5)]
    assert [len(reply.body["data"]) for reply in pages] == [5, 5, 2, 0]
    assert {reply.body["total"] for reply in pages} == {12}
    read_slice = [task["title"] for reply in pages for task in reply.body["data"]]
    assert read_slice == [f"2026-11-{day:02d}T10:00:00Z" for day in range(1, 13)]
    assert (await ana.get(f"/api/tasks/{path}{join}limit=5000")).body["limit"] == 1000
    assert (await ana.get(f"/api/tasks/{path}{join}limit=0")).body["limit"] == 1000
