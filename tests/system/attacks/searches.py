"""Attacks by reads of many records, with one key or token, beside another owner."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial

import aiohttp

from gateway.domain.accounts import tokens
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.sales.deals import DEALS
from gateway.records.resource import Resource
from outbox import database
from outbox.clock import SystemClock
from outbox.ids import Ids
from tests.benchmarks.lists import Values, contact, deal, fill
from tests.system.attacks.attack import Attack, Target
from tests.system.attacks.neighbour import beside

RECORDS = 100_000
NEIGHBOURS_RECORDS = 1_000
REQUESTS = 300
AT_ONCE = 50
LEAVES_SECONDS = 0.02
KEYS_MOST = 50
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
    await _fill(target, CONTACTS, contact)


async def many_deals(target: Target) -> None:
    """Insert 100,000 deals of the attacker, and a few contacts of the neighbour's."""
    await _fill(target, DEALS, deal)


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
        await fill(db, resource, attacker, RECORDS, values)
        await fill(db, CONTACTS, neighbour, NEIGHBOURS_RECORDS, contact)
    finally:
        await db.close()


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
