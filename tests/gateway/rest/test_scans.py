"""Tests expensive reads: their cost, their queue, and their end on disconnect."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace

import aiohttp
import pytest

from gateway.server.config import Config, Limits
from gateway.server.http import middleware
from gateway.server.http.rate_limits import REST_SECONDS
from outbox.database.transaction import Database, Tx
from outbox.database.unit_limits import SCANS_WAITING
from tests.support.rest import Person, RestApi
from tests.support.site import serving
from tests.support.waiting import until

SEARCH = "/api/contacts?search=a"
LONG = """
with recursive numbers (n) as (
  select 1 union all select n + 1 from numbers where n < 100000000)
select count(*) as n from numbers
"""


@asynccontextmanager
async def occupied(db: Database) -> AsyncIterator[None]:
    """Occupy all places for scans, each for another owner."""
    began = [asyncio.Event() for _ in range(2 if db.engine == "sqlite" else 3)]

    async def count_long(tx: Tx, event: asyncio.Event) -> None:
        event.set()
        await tx.one(LONG)

    scans = [asyncio.create_task(db.scan(f"owner {n}", count_long, e)) for n, e in enumerate(began)]
    await asyncio.gather(*(event.wait() for event in began))
    try:
        yield
    finally:
        for scan in scans:
            scan.cancel()
        await asyncio.wait(scans)


async def waiting(db: Database, count: int) -> None:
    """Wait until `count` scans wait besides those of `occupied`."""
    await until(lambda: db._places.waiting == count)  # type: ignore[attr-defined]


async def test_a_caller_without_tokens_gets_retry_after(still: Database) -> None:
    async with serving(still, Config(limits=Limits(read_per_second=1, burst=6))) as site:
        ana = await RestApi(site).person()
        assert (await ana.get(SEARCH)).status == 200
        refused = await ana.get(SEARCH)
        assert (refused.status, refused.body["code"]) == (429, "rate_limited")
        assert refused.headers["Retry-After"] == "4"
        # A refused request takes no token, so that asking again at once does not starve the client.
        assert (await ana.get("/api/contacts")).status == 200


async def test_a_client_that_asks_again_at_once_waits_for_its_refusals(
    still: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = list[float]()

    async def rest(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(middleware, "asyncio", SimpleNamespace(sleep=rest))
    few = Limits(read_per_second=1, burst=1, storefront_per_minute=1)
    async with serving(still, Config(limits=few)) as site:
        api = RestApi(site)
        ana, bia = await api.person(), await api.person()
        answers = Counter([(await ana.get("/api/me")).status for _ in range(24)])
        assert (answers, waited) == ({200: 1, 429: 23}, [REST_SECONDS] * 3)
        assert [(await bia.get("/api/me")).status for _ in range(2)] == [200, 429]
        assert len(waited) == 3
        # So does an address of visitors.
        nobody = Person(site.http, "", {})
        query = {"query": "{ __typename }"}
        answers = Counter([(await nobody.post("/graphql", query)).status for _ in range(24)])
        assert (answers, len(waited)) == ({200: 1, 429: 23}, 6)


async def test_a_long_list_by_due_date_is_paid_for_once_it_is_read(still: Database) -> None:
    async with serving(
        still, Config(limits=Limits(read_per_second=20, write_per_second=0, burst=1))
    ) as site:
        ana = await RestApi(site).person()
        for number in range(150):
            draft = {"title": f"{number}", "dueDate": "2020-01-01"}
            assert (await ana.post("/api/tasks", draft)).status == 201
        listed = await ana.get("/api/tasks/overdue")
        assert len(listed.body["data"]) == 150
        # Of 20 it took two, one more for each further hundred, and then one.
        assert (await ana.get("/api/me")).headers["RateLimit"] == '"read";r=16;t=1'
        assert (await ana.get("/api/tasks/overdue?limit=100")).status == 200
        assert (await ana.get("/api/me")).headers["RateLimit"] == '"read";r=13;t=1'


async def test_all_keys_of_an_account_share_one_bucket(still: Database) -> None:
    async with serving(still, Config(limits=Limits(read_per_second=1, burst=3))) as site:
        api = RestApi(site)
        ana, bia = await api.person(), await api.person()
        second = await api.key_of(ana.user_id)
        answers = [(await who.get("/api/me")).status for who in (ana, second, ana, second)]
        assert answers == [200, 200, 200, 429]
        assert (await bia.get("/api/me")).status == 200


@pytest.mark.parametrize(
    ("path", "tokens"),
    [
        ("/api/contacts", 1),
        ("/api/contacts?page=51", 1),
        ("/api/contacts?page=52", 2),
        ("/api/contacts?limit=100&page=12", 2),
        (f"/api/contacts?ids={'a' * 24}&page=52", 1),
        ("/api/tasks/overdue", 2),
        ("/api/tasks/upcoming", 2),
        ("/api/tasks/calendar", 2),
        ("/api/export/contacts.csv", 10),
    ],
)
async def test_a_read_costs_what_it_reads(still: Database, path: str, tokens: int) -> None:
    async with serving(still, Config(limits=Limits(read_per_second=100, burst=1))) as site:
        ana = await RestApi(site).person()
        assert (await ana.get(path)).headers["RateLimit"] == f'"read";r={100 - tokens};t=1'


@pytest.mark.slow
async def test_a_list_by_due_date_takes_its_turn(api: RestApi, ana: Person) -> None:
    async with occupied(api.db):
        paths = ("/api/tasks/overdue", "/api/tasks/calendar", "/api/contacts?page=52")
        waits = [asyncio.create_task(ana.get(path)) for path in paths]
        await waiting(api.db, 3)
        assert (await ana.get(f"/api/contacts?ids={'a' * 24}")).status == 200
    assert {(await reply).status for reply in waits} == {200}


@pytest.mark.slow
async def test_the_waiting_requests_of_an_account_are_limited(
    api: RestApi, ana: Person, bia: Person
) -> None:
    async with occupied(api.db):
        flood = [asyncio.create_task(ana.get(SEARCH)) for _ in range(SCANS_WAITING)]
        await waiting(api.db, SCANS_WAITING)
        refused = await ana.get(SEARCH)
        assert (refused.status, refused.body["code"]) == (429, "rate_limited")
        assert refused.headers["Retry-After"] == "1"
        assert (await ana.get("/api/contacts")).status == 200
        other = asyncio.create_task(bia.get(SEARCH))
        await waiting(api.db, SCANS_WAITING + 1)
    assert (await other).status == 200
    assert {(await reply).status for reply in flood} == {200}


@pytest.mark.slow
async def test_a_search_is_cancelled_when_the_client_disconnects(api: RestApi, ana: Person) -> None:
    async with aiohttp.ClientSession(api.site.url, headers=ana.headers) as http:
        async with occupied(api.db):
            left = [asyncio.create_task(http.get(SEARCH)) for _ in range(3)]
            await waiting(api.db, 3)
            for request in left:
                request.cancel()
                with suppress(asyncio.CancelledError):
                    await request
            await waiting(api.db, 0)
    assert (await ana.get(SEARCH)).status == 200
