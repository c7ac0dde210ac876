"""Tests long lists: complete pages, truncated lists without pages, and unread bytes."""

import asyncio
import json
from itertools import cycle, islice

import pytest

from gateway.domain.contacts.activities import ACTIVITIES
from gateway.domain.contacts.tasks import TASKS
from gateway.records import store
from gateway.rest.lists import MOST_BYTES
from gateway.rest.routes import ROUTES
from gateway.server.config import Config, Limits
from gateway.server.http.answers import FLOWING
from outbox.database.transaction import Database, Tx
from tests.support.rest import Person, RestApi
from tests.support.site import Site, serving
from tests.support.waiting import until

DUE = 1_764_600_000_000_000
CALENDAR = "/api/tasks/calendar?start=2025-12-01&end=2025-12-02"


async def tasks(tx: Tx, owner: str, sizes: list[int]) -> None:
    """Create a task for each size of a description, due in this order."""
    for number, size in enumerate(sizes):
        values = {"title": f"t{number}", "due_at": DUE + number, "due_day": False,
                  "priority": "low", "completed": False}  # fmt: skip
        await store.insert(tx, TASKS, owner, values | {"description": "é" * size or None})


async def activities(tx: Tx, owner: str, many: int, size: int) -> None:
    for number in range(many):
        values = {"type": "note", "description": f"{number:03}" + "x" * size, "related_id": owner,
                  "related_type": "contact", "created_by": owner}  # fmt: skip
        await store.insert(tx, ACTIVITIES, owner, values)


SIZES = [65_535 if n % 7 == 0 else n for n in range(260)]


@pytest.mark.slow
async def test_a_page_of_long_records_is_complete_and_in_order(ana: Person, db: Database) -> None:
    await db.write(tasks, ana.user_id, SIZES)
    reply = await ana.get(CALENDAR)
    body = reply.body
    assert (reply.status, body["total"], body["page"], body["limit"]) == (200, 260, 1, 1000)
    assert [task["title"] for task in body["data"]] == [f"t{n}" for n in range(260)]
    assert [len(task.get("description", "")) for task in body["data"]] == SIZES
    assert "Content-Length" not in reply.headers
    for page, limit in ((1, 150), (2, 150), (3, 150), (2, 100), (5, 60)):
        part = (await ana.get(f"{CALENDAR}&page={page}&limit={limit}")).body
        assert part["data"] == body["data"][(page - 1) * limit : page * limit]
        assert part["total"] == 260
    listed = (await ana.get("/api/tasks?sort=dueDate&limit=100")).body
    assert listed["data"] == body["data"][:100]


@pytest.mark.slow
async def test_a_list_without_pages_is_truncated(ana: Person, db: Database) -> None:
    await db.write(activities, ana.user_id, 60, 60_000)
    path = "/api/activities/recent?limit=100"
    whole = (await ana.get(path)).body
    assert (len(whole["data"]), "truncated" in whole) == (60, False)
    await db.write(activities, ana.user_id, 40, 60_000)
    reply = await ana.get(path)
    assert reply.body["truncated"] is True
    size = len(json.dumps(reply.body, separators=(",", ":")))
    assert MOST_BYTES - 61_000 < size < MOST_BYTES + 100
    page = (await ana.get("/api/activities?limit=100")).body["data"]
    assert reply.body["data"] == page[: len(reply.body["data"])]


async def test_the_head_of_a_long_list(ana: Person, db: Database) -> None:
    await db.write(tasks, ana.user_id, [65_535] * 20)
    reply = await ana.call("HEAD", CALENDAR)
    assert reply.status == 200


SMALL = Config(limits=Limits(answer_bytes=FLOWING * 8, read_per_second=0))


@pytest.mark.slow
@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_a_link_that_clients_refuse_is_left_out(ana: Person, db: Database) -> None:
    """aiohttp, nginx and others take no header of more than 8 KB, or less."""
    await db.write(tasks, ana.user_id, [1] * 300)
    pages = [(await ana.get(f"/api/tasks?limit=100&page={n}")).body["data"] for n in (1, 2, 3)]
    ids = [one["id"] for page in pages for one in page]
    for many, linked in ((120, True), (300, False)):
        reply = await ana.get(f"/api/tasks?limit=100&ids={','.join(ids[:many])}")
        assert ("Link" in reply.headers) is linked
        assert len(reply.body["data"]) == 100
        after = await ana.get(
            f"/api/tasks?limit=100&ids={','.join(ids[:many])}&cursor={reply.body['nextCursor']}"
        )
        assert len(after.body["data"]) == min(100, many - 100)


@pytest.mark.slow
async def test_hundreds_of_ids_cost_as_much_as_their_pages(db: Database) -> None:
    served = []
    async with serving(db, Config(limits=Limits(read_per_second=6))) as site:
        api = RestApi(site)
        for count in (100, 300):
            who, ids = await api.person(), ",".join(f"{n:024x}" for n in range(count))
            statuses = [(await who.get(f"/api/tasks?ids={ids}")).status for _ in range(40)]
            served.append(statuses.count(200))
    # 300 cost three times as much; tokens return meanwhile.
    assert served[1] <= served[0] // 2, served


@pytest.mark.slow
async def test_a_list_refuses_paging_that_it_lacks(ana: Person) -> None:
    """Each list is asked with a few of the spellings in turn."""
    spellings = cycle((
        "offset", "skip", "$skip", "per_page", "page[size]", "pageToken", "starting_after",
        "nextCursor", "next", "before", "since_id", "startIndex", "PageNumber",
    ))  # fmt: skip
    for method, path, operation in ROUTES:
        if method != "GET" or "{id}" in path:
            continue
        known = {one.name for one in operation.parameters if one.where == "query"}
        target = path.replace("{entityId}", "0" * 24)
        for name in (*islice(spellings, 3), *({"page", "limit", "cursor", "after"} - known)):
            reply = await ana.get(f"{target}?{name}=2")
            if operation.name.startswith("list") and path != "/api/keys":
                assert (reply.status, reply.faults) == (400, {name: "invalid_parameter"}), path
                takes = [one for one in ("cursor", "limit") if one in known]
                assert all(one in reply.body["error"] for one in takes)
            else:
                assert reply.headers.get("X-Ignored-Parameters", name) in (name, "…"), path
        for name in ("foo", "start", "utm_source"):
            if name not in known:
                assert "invalid_parameter" not in (await ana.get(f"{target}?{name}=2")).text
    anonymous = await ana.get("/api/contacts?offset=2", X_API_Key="wrong")
    assert anonymous.status == 401


@pytest.mark.slow
async def test_unread_bytes_of_one_caller_are_limited(db: Database) -> None:
    """A streamed response uses the budget of its caller only."""
    async with serving(db, SMALL) as site:
        owner, other = await site.user(), await site.user("rui@example.com")
        for one in (owner, other):
            await db.write(tasks, one, [65_535] * 100)
        key, theirs = await site.key(owner), await site.key(other)
        reader, writer = await _ask(site, key)
        assert b" 200 " in await reader.readline()
        for path in ("/api/tasks", "/api/me"):
            async with site.http.get(path, headers={"X-API-Key": key}) as answer:
                assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
                assert (await answer.json())["code"] == "unavailable"
        async with site.http.post(
            "/api/contacts", json={"name": "x"}, headers={"X-API-Key": key}
        ) as answer:
            assert answer.status == 503
        async with site.http.get(CALENDAR, headers={"X-API-Key": theirs}) as answer:
            assert len((await answer.json())["data"]) == 100
        writer.transport.abort()

        async def free() -> bool:
            async with site.http.get("/api/tasks", headers={"X-API-Key": key}) as answer:
                return answer.status == 200

        assert await until(free)


async def _ask(site: Site, key: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port, limit=4096)
    writer.write(f"GET {CALENDAR} HTTP/1.1\r\nHost: a\r\nX-API-Key: {key}\r\n\r\n".encode())
    return reader, writer
