"""All deliveries and all events in the console: filters, search, pages, owners."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Collection
from typing import Any
from urllib.parse import urlencode

import pytest
from aiohttp import web

from outbox.database.transaction import Database, Row, Tx
from tests.support.console import CONFIG, Guest, Seen
from tests.support.drain import Inbox, inbox
from tests.support.site import Site, serving
from tests.support.waiting import until

ROW = 'scope="row"'
REPLAY = """
insert into deliveries (id, owner_id, event_id, webhook_id, origin, state, retry, next_at, tries,
  attempts, record_id, seq, created_at, finished_at, last_status, last_outcome)
select $2, owner_id, event_id, webhook_id, 'replay', state, retry, next_at, tries, attempts,
  record_id, seq, created_at, finished_at, last_status, last_outcome
from deliveries where id = $1
"""


@pytest.fixture
async def console(db: Database) -> AsyncIterator[Site]:
    """The gateway with its drain."""
    async with serving(db, CONFIG, role="all") as site:
        yield site


@pytest.fixture
async def box() -> AsyncIterator[Inbox]:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=410 if request.path == "/gone" else 200)

    async with inbox() as box:
        box.answer = answer
        yield box


async def key_of(guest: Guest) -> dict[str, str]:
    page = await guest.submit("/console/keys", name="k", scopes=["read", "write"])
    return {"X-API-Key": page.test_id("api-key") or ""}


async def contact(site: Site, key: dict[str, str], **headers: str) -> str:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with site.http.post("/api/contacts", json={"name": "Ana"}, headers=key | named) as answer:
        assert answer.status == 201
        return str((await answer.json())["id"])


async def rows(guest: Guest, path: str, **query: str) -> int:
    page = await guest.get(f"{path}?{urlencode(query)}")
    assert page.status == 200
    return page.html.count(ROW)


async def settled(guest: Guest, count: int) -> None:
    async def done() -> bool:
        kinds = [await rows(guest, "/console/deliveries", state=s) for s in ("delivered", "gone")]
        return sum(kinds) == count

    await until(done)


async def test_filters_and_search_find_deliveries_of_all_webhooks(
    console: Site, maria: Guest, box: Inbox
) -> None:
    key = await key_of(maria)
    fine = await maria.webhook(f"{box.url}/fine", "contact.created")
    gone = await maria.webhook(f"{box.url}/gone", "contact.created")
    first = await contact(console, key, X_Request_Id="order-4711")
    await settled(maria, 2)
    second = await contact(console, key)
    await until(lambda: _is(maria, {"state": "delivered"}, 2))
    for query, count in (
        ({}, 4), ({"state": "failed"}, 1), ({"state": "gone"}, 1), ({"state": "parked"}, 1),
        ({"state": "waiting"}, 1), ({"state": "exhausted"}, 0), ({"state": "in_flight"}, 0),
        ({"state": "held"}, 0), ({"status": "410"}, 1), ({"status": "200"}, 2),
        ({"event": "contact.created"}, 4), ({"event": "deal.created"}, 0),
        ({"webhook": fine.id}, 2), ({"webhook": gone.id}, 2),
        ({"webhook": gone.id, "state": "failed", "status": "410"}, 1),
        ({"since": "2020-01-01T00:00"}, 4), ({"since": "2990-01-01T00:00"}, 0),
        ({"until": "2020-01-01T00:00"}, 0), ({"until": "2990-01-01T00:00"}, 4),
        ({"q": first}, 2), ({"q": second}, 2), ({"q": "order-4711"}, 2), ({"q": "order"}, 0),
        ({"q": first, "state": "failed"}, 1), ({"q": first, "webhook": fine.id}, 1),
        ({"state": "waiting", "until": "2020-01-01T00:00"}, 0),
        ({"state": "waiting", "event": "contact.created"}, 1),
    ):  # fmt: skip
        assert await rows(maria, "/console/deliveries", **query) == count, query
    page = await maria.get(f"/console/deliveries?q={first}&state=gone")
    [delivery] = {part.partition('"')[0] for part in page.html.split('id="d-')[1:]}
    assert await rows(maria, "/console/deliveries", q=delivery) == 1
    assert await rows(maria, "/console/events", q=delivery) == 1
    shown = await maria.get(f"/console/deliveries/{delivery}")
    event = shown.html.partition('id="event-id">')[2][:24]
    assert await rows(maria, "/console/deliveries", q=event) == 2


async def _is(guest: Guest, query: dict[str, str], count: int) -> bool:
    return await rows(guest, "/console/deliveries", **query) == count


async def test_events_are_listed_with_their_deliveries(
    console: Site, maria: Guest, box: Inbox
) -> None:
    key = await key_of(maria)
    first = await contact(console, key, X_Request_Id="import-1")
    await until(lambda: _listed(maria, 1))
    page = await maria.get("/console/events")
    assert "no deliveries" in page.html
    await maria.webhook(f"{box.url}/fine", "contact.created")
    await contact(console, key)
    await until(lambda: _listed(maria, 2))
    await settled(maria, 1)
    for query, count in (
        ({}, 2), ({"event": "contact.created"}, 2), ({"event": "deal.created"}, 0),
        ({"q": first}, 1), ({"q": first.upper()}, 1), ({"q": "import-1"}, 1), ({"q": "import"}, 0),
        ({"since": "2990-01-01T00:00"}, 0), ({"until": "2020-01-01T00:00"}, 0),
        ({"since": "2020-01-01T00:00", "until": "2990-01-01T00:00"}, 2),
    ):  # fmt: skip
        assert await rows(maria, "/console/events", **query) == count, query
    page = await maria.get(f"/console/events?q={first}")
    event = page.html.partition('id="e-')[2][:24]
    shown = await maria.get(f"/console/events/{event}")
    assert "import-1" in shown.html
    assert '"name": "Ana"' in (shown.test_id("pretty-body") or "")
    assert '"name":"Ana"' in (shown.test_id("delivery-body") or "")


async def made(site: Site, key: dict[str, str], path: str, body: dict[str, Any]) -> str:
    async with site.http.post(path, json=body, headers=key) as answer:
        assert answer.status == 201, await answer.text()
        return str((await answer.json())["id"])


async def test_a_search_takes_what_a_record_is_called(
    console: Site, maria: Guest, rui: Guest, box: Inbox
) -> None:
    key = await key_of(maria)
    await maria.webhook(f"{box.url}/fine", "contact.created", "deal.created", description="ERP x")
    rita = await made(
        console, key, "/api/contacts", {"name": "Ríta Lima", "email": "rita@lima.example"}
    )
    for name in ("Ana Souza", "Ana Silva"):
        await made(console, key, "/api/contacts", {"name": name})
    await made(console, key, "/api/deals", {"title": "Roof", "value": 10, "contactId": rita})
    await settled(maria, 4)
    for path in ("/console/deliveries", "/console/events"):
        # One record: its rows at once.
        for text in ("rita lima", "lima.example", "roof"):
            page = await maria.get(f"{path}?{urlencode({'q': text})}")
            assert page.html.count(ROW) == 1, (path, text)
            assert "one record does" in (page.test_id("meant") or "")
        # Several: they are named, and each leads to its rows.
        page = await maria.get(f"{path}?q=ana")
        assert page.html.count(ROW) == 0
        for name in ("Ana Souza", "Ana Silva"):
            link = re.search(f'href="([^"]+)"><bdi>{name}', page.html)
            assert link, page.html
            assert (await maria.get(link[1])).html.count(ROW) == 1
        none = await maria.get(f"{path}?q=nobody")
        assert "no record has this name" in none.html
        assert "Remove a filter" not in none.html
        filtered = await maria.get(f"{path}?q=nobody&event=deal.created")
        assert "Other filters are set" in filtered.html
        assert "Remove a filter" in (await maria.get(f"{path}?event=task.deleted")).html
        assert (await rui.get(f"{path}?q=ana")).test_id("meant") is None
    webhook = await maria.get("/console/deliveries?q=erp")
    link = re.search('href="([^"]+)"><bdi>ERP x', webhook.html)
    assert link
    assert (await maria.get(link[1])).html.count(ROW) == 4


async def _listed(guest: Guest, count: int) -> bool:
    return await rows(guest, "/console/events") == count


async def walk(guest: Guest, path: str, before: Collection[str] = ()) -> list[int]:
    """Return how many rows each page of a list has; no row is on two pages or `before` them."""
    counts, seen, link = list[int](), {*before}, path
    while link:
        page = await guest.get(link)
        ids = _ids(page.html)
        counts.append(len(ids))
        assert not seen & set(ids)
        seen |= set(ids)
        link = _next(page)
    return counts


def _next(page: Seen) -> str:
    return page.html.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")


async def test_a_search_has_pages_however_many_deliveries_an_event_has(
    console: Site, maria: Guest, box: Inbox
) -> None:
    key = await key_of(maria)
    await maria.webhook(f"{box.url}/fine", "contact.created")
    record = await contact(console, key)
    await settled(maria, 1)
    [first] = await console.db.read(_rows, "select id, event_id from deliveries")

    async def replay(tx: Tx) -> None:
        for number in range(119):
            await tx.run(REPLAY, first["id"], f"{int(first['id'], 16) + number + 1:024x}")

    await console.db.write(replay)
    path = "/console/deliveries?q="
    for search in (record, first["event_id"], f"{first['event_id']}&state=delivered"):
        assert await walk(maria, f"{path}{search}") == [50, 50, 20]
    assert await walk(maria, f"{path}{record}&state=gone") == [0]

    async def purge(tx: Tx) -> None:
        await tx.run("delete from events")

    begun = await maria.get(f"{path}{first['event_id']}")
    await console.db.write(purge)
    assert await walk(maria, f"{path}{first['event_id']}") == [50, 50, 20]
    # Who reads the first page before it and the next one after it gets the others once, too.
    assert await walk(maria, _next(begun), _ids(begun.html)) == [50, 20]


async def _rows(tx: Tx, sql: str) -> list[Row]:
    return await tx.all(sql)


@pytest.mark.slow
async def test_a_list_has_pages(console: Site, maria: Guest, box: Inbox) -> None:
    key = await key_of(maria)
    for name in ("one", "two"):
        await maria.webhook(f"{box.url}/{name}", "contact.created")
    await asyncio.gather(*(contact(console, key) for _ in range(55)))
    await until(lambda: _full(maria))
    for path, sizes in (("/console/deliveries", [50, 50, 10]), ("/console/events", [50, 5])):
        assert await walk(maria, path) == sizes


def _ids(html: str) -> list[str]:
    return [part.partition('"')[0] for part in html.split('<a id="')[1:] if part[1] == "-"]


async def _full(guest: Guest) -> bool:
    page = await guest.get("/console/deliveries?state=delivered")
    page = await guest.get(page.link("Next page")) if "next-page" in page.html else page
    page = await guest.get(page.link("Next page")) if "next-page" in page.html else page
    return page.html.count(ROW) == 10


async def test_a_delivery_behind_an_open_circuit_says_so(
    console: Site, maria: Guest, box: Inbox
) -> None:
    async def refuse(request: web.Request) -> web.StreamResponse:
        return web.Response(status=500)

    box.answer = refuse
    key = await key_of(maria)
    webhook = await maria.webhook(f"{box.url}/down", "contact.created")
    await contact(console, key)
    await until(lambda: _is(maria, {"state": "scheduled"}, 1))
    page = await maria.get("/console/deliveries?state=scheduled")
    path = f"/console/deliveries/{_ids(page.html)[0].removeprefix('d-')}"
    assert "until a probe succeeds" not in (await maria.get(path)).html

    async def opened(tx: Tx) -> None:
        await tx.run("update webhooks set circuit = 'open' where id = $1", webhook.id)

    await console.db.write(opened)
    shown = await maria.get(path)
    assert "until a probe succeeds" in shown.html
    assert " of 10, next at " in shown.html


async def test_what_was_not_sent_says_why(console: Site, maria: Guest, box: Inbox) -> None:
    key = await key_of(maria)
    webhook = await maria.webhook(f"{box.url}/fine", "contact.created", description="ERP")

    async def opened(tx: Tx) -> None:
        await tx.run("update webhooks set circuit = 'open' where id = $1", webhook.id)
        await tx.run("update lanes set failing = true where webhook_id = $1", webhook.id)

    await console.db.write(opened)
    page = await maria.get("/console/deliveries")
    assert "<bdi>ERP</bdi>" in page.html.partition('data-testid="troubles"')[2]
    await maria.submit(f"/console/webhooks/{webhook.id}/pause", at="/console/account")
    await contact(console, key)
    await until(lambda: _is(maria, {"state": "parked"}, 1))
    listed = await maria.get("/console/deliveries")
    path = f"/console/deliveries/{_ids(listed.html)[0].removeprefix('d-')}"
    assert "the webhook is not active" in (await maria.get(path)).html
    ended = await maria.submit(f"{path}/cancel", at=path)
    assert "It ended before its first attempt." in ended.html
    assert "starts at once" not in ended.html


async def test_pages_show_an_attempt_with_damaged_headers_without_them(
    console: Site, maria: Guest, box: Inbox
) -> None:
    key = await key_of(maria)
    webhook = await maria.webhook(f"{box.url}/gone", "contact.created")
    await contact(console, key)
    await settled(maria, 1)
    listed = await maria.get("/console/deliveries")
    paths = (
        f"/console/deliveries/{_ids(listed.html)[0].removeprefix('d-')}",
        f"/console/webhooks/{webhook.id}",
    )

    async def damage(tx: Tx) -> None:
        await tx.run("update attempts set request_headers = '[', response_headers = '['")

    await console.db.write(damage)
    for path in paths:
        shown = await maria.get(path)
        assert shown.status == 200, path
        assert "410" in shown.html, path
