"""Attacks by reads of many records, with one key or token, beside another owner."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import aiohttp

from gateway.domain.accounts import tokens
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.sales.deals import DEALS
from gateway.records import statements, store
from gateway.records.resource import Resource
from gateway.records.values.folding import fold, fold_all
from outbox import database
from outbox.clock import SystemClock
from outbox.database import sql
from outbox.database.transaction import Tx
from outbox.ids import Ids
from tests.system.attacks.attack import Attack, Target
from tests.system.attacks.neighbour import beside

RECORDS = 100_000
FILL_AT_ONCE = 1_280
"""Ten statements of the largest size that outbox.database.sql makes."""
NEIGHBOURS_RECORDS = 1_000
REQUESTS = 300
AT_ONCE = 50
LEAVES_SECONDS = 0.02
KEYS_MOST = 50
Values = Callable[[int], dict[str, Any]]
TOKEN = tokens.PREFIX + "a" * 43
SEARCHES = ("/api/contacts?search=silva", "/api/contacts?search=nobody", "/api/contacts?search=9")
LISTS = (
    "/api/contacts?sort=-name,createdAt", "/api/contacts?sort=createdAt,name&source=api",
    "/api/contacts?updatedSince=2000-01-01T00:00:00Z&page=4000",
)  # fmt: skip
REPORTS = (
    "/api/reports/sales?groupBy=day&from=2025-12-01&to=2026-11-30", "/api/reports/funnel",
    "/api/reports/leads?groupBy=month", "/api/reports/activities?groupBy=day",
    "/api/reports/receivables",
)  # fmt: skip


async def many_contacts(target: Target) -> None:
    """Insert 100,000 contacts of the attacker, and a few of the neighbour's."""
    await _fill(target, CONTACTS, _contact)


async def many_deals(target: Target) -> None:
    """Insert 100,000 deals of the attacker, and a few contacts of the neighbour's."""
    await _fill(target, DEALS, _deal)


def _contact(number: int) -> dict[str, Any]:
    return {
        "name": f"Maria da Conceição Silva {number}", "email": f"maria{number}@example.com",
        "phone": "+55 11 98888-7777", "phone_e164": "+5511988887777", "tags": "[]", "source": "api",
    }  # fmt: skip


def _deal(number: int) -> dict[str, Any]:
    return {
        "title": f"Supply {number}", "value": 100 * number, "currency": "BRL",
        "stage": ("lead", "qualified", "proposal", "negotiation", "closing")[number % 5],
        "status": ("open", "won", "lost")[number % 3], "contact_ids": "[]",
    }  # fmt: skip


async def a_token(target: Target) -> None:
    """Return a token of the attacker, because a key cannot create keys."""
    db = await database.open(target.url, clock=SystemClock(), ids=Ids())
    try:
        await db.write(tokens.add, owner_id=target.owners[0], text=TOKEN, lifetime=3600)
    finally:
        await db.close()


async def _fill(target: Target, resource: Resource, values: Values) -> None:
    attacker, neighbour = target.owners
    db = await database.open(target.url, clock=SystemClock(), ids=Ids())
    try:
        for first in range(0, RECORDS, FILL_AT_ONCE):
            numbers = range(first, min(first + FILL_AT_ONCE, RECORDS))
            await db.write(_insert, resource, attacker, map(values, numbers))
        numbers = range(NEIGHBOURS_RECORDS)
        await db.write(_insert, CONTACTS, neighbour, map(_contact, numbers))
    finally:
        await db.close()


async def _insert(
    tx: Tx, resource: Resource, owner_id: str, some: Iterable[dict[str, Any]]
) -> None:
    """Insert records as creates leave them, without events."""
    rows, slots = [], Counter[int]()
    for values in some:
        row: dict[str, Any] = dict.fromkeys(statements.written(resource)) | values
        row |= {"id": tx.new_id(), "owner_id": owner_id, "version": 1, "created_at": tx.now}
        if resource.search:
            row["folded"] = fold_all([values[name] for name in resource.search])
        if resource.folded_sort:
            row["sort_name"] = fold(values[resource.folded_sort])
        rows.append(tuple(row.values()))
        slots[store.slot(row["id"])] += 1
    await sql.insert(tx, resource.table, statements.written(resource), rows)
    store.tally(tx, owner_id, resource.table, slots)


async def flood(paths: Sequence[str], target: Target) -> int:
    """Request the paths again and again, many at once."""

    async def ask() -> int:
        async with aiohttp.TCPConnector(limit=AT_ONCE) as connector, aiohttp.ClientSession(
            target.address, connector=connector, headers={"X-API-Key": target.keys[0]}
        ) as http:  # fmt: skip
            answers = await _all(http, "GET", paths)
        _judge(target, answers)
        return REQUESTS

    return await beside(target, ask)


async def abandoned(target: Target) -> int:
    """Request searches, and disconnect while they run or wait."""

    async def leave(number: int, places: asyncio.Semaphore) -> None:
        path = SEARCHES[number % len(SEARCHES)]
        head = f"GET {path} HTTP/1.1\r\nHost: a\r\nX-API-Key: {target.keys[0]}\r\n\r\n"
        async with places:
            _, writer = await asyncio.open_connection("127.0.0.1", target.port)
            writer.write(head.encode())
            await asyncio.sleep(LEAVES_SECONDS)
            writer.transport.abort()

    async def ask() -> int:
        places = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(leave(number, places) for number in range(REQUESTS)))
        return REQUESTS

    return await beside(target, ask)


async def keys(target: Target) -> int:
    """Create API keys with a token as fast as the server allows."""
    headers = {"Authorization": f"Bearer {TOKEN}"}

    async def ask() -> int:
        async with aiohttp.ClientSession(target.address, headers=headers) as http:
            answers = await _all(http, "POST", ["/api/keys"], {"name": "more"})
            _judge(target, answers)
            async with http.get("/api/keys") as answer:
                made = len((await answer.json())["data"])
        if made > KEYS_MOST:
            target.findings.append(f"{made} keys of one account")
        return REQUESTS + 1

    return await beside(target, ask)


async def _all(
    http: aiohttp.ClientSession, method: str, paths: Sequence[str], body: object = None
) -> list[int]:
    """Return the statuses of REQUESTS requests, AT_ONCE at a time."""
    statuses: list[int] = []

    async def several(first: int) -> None:
        for number in range(first, REQUESTS, AT_ONCE):
            path = paths[number % len(paths)]
            async with http.request(method, path, json=body) as answer:
                await answer.read()
                statuses.append(answer.status)

    await asyncio.gather(*(several(first) for first in range(AT_ONCE)))
    return statuses


def _judge(target: Target, answers: Sequence[int]) -> None:
    """Require some successful responses, and 409 or 429 for all others."""
    seen = Counter(answers)
    if not seen.keys() & {200, 201} or seen.keys() - {200, 201, 409, 429}:
        target.findings.append(f"answers: {dict(seen)}")


ATTACKS = (
    Attack("search flood", partial(flood, SEARCHES), many_contacts),
    Attack("list flood", partial(flood, LISTS), many_contacts),
    Attack("report flood", partial(flood, REPORTS), many_deals),
    Attack("abandoned searches", abandoned, many_contacts),
    Attack("key flood", keys, a_token),
)
