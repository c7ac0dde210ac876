"""Attacks by deletes of records with many dependants, while another user writes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from gateway.domain.contacts.companies import COMPANIES
from gateway.domain.contacts.contacts import CONTACTS
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.resource import Resource
from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Database, Tx
from outbox.ids import Ids
from tests.support.crm_rows import add_activities, add_contacts
from tests.support.records import asked
from tests.system.attacks.attack import Attack, Target

MANY_CONTACTS = 60
ACTIVITIES = 2_000
MANY_COMPANIES = 20
EMPLOYEES = 3_000
ONE_LONG = 200_000
ROUNDS = 100
PAUSE_SECONDS = 0.1
AFTER = 20
"""Writes of another user after the attack."""
SETTLE_SECONDS = 120.0
LOOK_SECONDS = 0.25
WRITE_SECONDS = 1.0
"""The longest time that a write of another user may take."""
Add = Callable[[Tx, str, int, str], Awaitable[None]]


async def contacts_with_activities(target: Target) -> None:
    """Insert contacts of the attacker, each with more activities than one delete covers."""
    await _fill(target, CONTACTS, MANY_CONTACTS, add_activities, ACTIVITIES)


async def one_contact_with_activities(target: Target) -> None:
    """Insert a contact with so many activities that their delete takes seconds."""
    await _fill(target, CONTACTS, 1, add_activities, ONE_LONG)


async def companies_with_contacts(target: Target) -> None:
    """Insert companies, each with more contacts than one delete updates."""
    await _fill(target, COMPANIES, MANY_COMPANIES, add_contacts, EMPLOYEES)


async def _fill(target: Target, kind: Resource, records: int, add: Add, each: int) -> None:
    actor = Actor(target.owners[0], "api_key")

    async def one(tx: Tx) -> None:
        made = await actions.create(tx, actor, kind, asked(kind, {"name": "A"}, creating=True))
        await add(tx, actor.owner_id, each, made.id)

    db: Database = await database.open(target.url, clock=SystemClock(), ids=Ids())
    try:
        for _ in range(records):
            await db.write(one)
    finally:
        await db.close()


async def many_deletes(target: Target) -> int:
    """Delete all of them at once."""
    async with _client(target, 0) as http:
        page = await _ask(http, "GET", "/api/contacts?limit=100")
        async with _somebody_writes(target):
            await asyncio.gather(
                *(_ask(http, "DELETE", f"/api/contacts/{c['id']}") for c in page["data"])
            )
            await _until_settled(target)
    return 1 + len(page["data"])


async def deletes_and_new_ones(target: Target) -> int:
    """Delete companies, create and link new ones, and list all of it, again and again."""
    async with _client(target, 0) as http:
        found = (await _ask(http, "GET", "/api/companies?limit=100"))["data"]
        people = (await _ask(http, "GET", "/api/contacts?limit=100"))["data"]
        async with _somebody_writes(target):
            for turn in range(ROUNDS):
                person = f"/api/contacts/{people[turn % len(people)]['id']}"
                if turn < len(found):
                    await _ask(http, "DELETE", f"/api/companies/{found[turn]['id']}")
                made = await _ask(http, "POST", "/api/companies", {"name": "Anew"})
                await _ask(http, "PUT", person, {"companyId": made.get("id")})
                await _ask(http, "GET", "/api/contacts?limit=100")
                await _ask(http, "DELETE", f"/api/companies/{made.get('id')}")
            await _until_settled(target)
    return 2 + len(found) + 4 * ROUNDS


async def _until_settled(target: Target) -> None:
    """Wait for the deferred work of a delete, which is part of its cost."""

    async def pending(tx: Tx) -> bool:
        return await tx.one("select 1 as found from pending_ends limit 1") is not None

    db = await database.open(target.url, clock=SystemClock(), ids=Ids())
    try:
        async with asyncio.timeout(SETTLE_SECONDS):
            while await db.read(pending):
                await asyncio.sleep(LOOK_SECONDS)
    finally:
        await db.close()


@asynccontextmanager
async def _client(target: Target, number: int) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"X-API-Key": target.keys[number]}
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(target.address, headers=headers, timeout=timeout) as http:
        yield http


async def _ask(http: aiohttp.ClientSession, method: str, path: str, body: Any = None) -> Any:
    """Accept any response: an attacker ignores limits."""
    async with http.request(method, path, json=body) as response:
        return await response.json()


@asynccontextmanager
async def _somebody_writes(target: Target) -> AsyncIterator[None]:
    """Write as another owner until a while after the block; slow writes are findings."""
    ended = asyncio.Event()

    async def write() -> None:
        worst = 0.0
        async with _client(target, 1) as http:
            left = AFTER
            while left:
                began = time.monotonic()
                async with http.post("/api/contacts", json={"name": "Ana"}) as response:
                    await response.read()
                    if response.status != 201:
                        target.findings.append(f"somebody else's write: {response.status}")
                worst = max(worst, time.monotonic() - began)
                left -= ended.is_set()
                await asyncio.sleep(PAUSE_SECONDS)
        if worst > WRITE_SECONDS:
            target.findings.append(f"{HELD_UP} {worst:.1f} s")

    writing = asyncio.create_task(write())
    try:
        yield
    finally:
        ended.set()
        await writing


ATTACKS = (
    Attack("deletes of contacts with 2,000 activities", many_deletes, contacts_with_activities),
    Attack("companies deleted, made and joined", deletes_and_new_ones, companies_with_contacts),
)
ONE_BIG = Attack(
    "delete of a contact with 200,000 activities", many_deletes, one_contact_with_activities
)
"""Shows what delays other writes; its one request exceeds the bar for the cost."""
HELD_UP = "somebody else's write took"
