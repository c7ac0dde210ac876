"""Requests that are much work, of records, keys and sign-ins, stay within their bars (R37)."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any

import aiohttp
import argon2
import pytest

from gateway.domain.accounts import api_keys, tokens, users
from gateway.domain.accounts.users import CheckedAccount
from gateway.domain.contacts.companies import COMPANIES
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.sales.deals import DEALS
from gateway.records import actions, statements, store
from gateway.records.audit import Actor
from gateway.records.resource import Resource
from gateway.records.values.folding import fold, fold_all
from outbox.database import sql
from outbox.database.transaction import Tx
from outbox.ids import Ids
from tests.support.crm_rows import add_contacts
from tests.support.engines import Engine
from tests.support.ledger import query
from tests.support.records import asked
from tests.support.waiting import until
from tests.system.attacks.attack import Attack, Target, beside, run_attack

REQUESTS = 300
AT_ONCE = 150
"""Fewer searches end before somebody else waits long, even without turns."""
RECORDS = 100_000
FILL_AT_ONCE = 1_280
"""Ten statements of the largest size that outbox.database.sql makes."""
Values = Callable[[int], dict[str, Any]]
TOKEN = tokens.PREFIX + "a" * 43
SEARCHES = ("/api/contacts?search=silva", "/api/contacts?search=nobody", "/api/contacts?search=9")
REPORTS = (
    "/api/reports/sales?groupBy=day&from=2025-12-01&to=2026-11-30", "/api/reports/funnel",
    "/api/reports/leads?groupBy=month", "/api/reports/activities?groupBy=day",
    "/api/reports/receivables",
)  # fmt: skip


def contact(number: int) -> dict[str, Any]:
    return {
        "name": f"Maria da Conceição Silva {number}", "email": f"maria{number}@example.com",
        "phone": "+55 11 98888-7777", "phone_e164": "+5511988887777", "tags": "[]", "source": "api",
    }  # fmt: skip


def deal(number: int) -> dict[str, Any]:
    return {
        "title": f"Supply {number}", "value": 100 * number, "currency": "BRL",
        "stage": ("lead", "qualified", "proposal", "negotiation", "closing")[number % 5],
        "status": ("open", "won", "lost")[number % 3], "contact_ids": "[]",
    }  # fmt: skip


async def many(resource: Resource, values: Values, target: Target) -> None:
    """Insert 100,000 records of the attacker, and a few contacts of the neighbour's."""
    attacker, neighbour = target.owners[:2]
    async with target.site.opened() as db:
        for first in range(0, RECORDS, FILL_AT_ONCE):
            numbers = range(first, min(first + FILL_AT_ONCE, RECORDS))
            await db.write(insert, resource, attacker, map(values, numbers))
        await db.write(insert, CONTACTS, neighbour, map(contact, range(1_000)))


async def insert(tx: Tx, resource: Resource, owner_id: str, some: Iterable[dict[str, Any]]) -> None:
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


async def _all(
    http: aiohttp.ClientSession, target: Target, method: str, paths: Sequence[str], body: Any = None
) -> None:
    """Send REQUESTS requests; require some successful responses, and 409 or 429 for all others."""
    statuses: Counter[int] = Counter()

    async def several(first: int) -> None:
        for number in range(first, REQUESTS, AT_ONCE):
            async with http.request(method, paths[number % len(paths)], json=body) as answer:
                await answer.read()
                statuses[answer.status] += 1

    await asyncio.gather(*(several(first) for first in range(AT_ONCE)))
    if not statuses.keys() & {200, 201} or statuses.keys() - {200, 201, 409, 429}:
        target.findings.append(f"answers: {dict(statuses)}")


async def flood(paths: Sequence[str], target: Target) -> int:
    """Request the paths again and again, many at once."""

    async def ask() -> int:
        async with target.client(0, limit=AT_ONCE) as http:
            await _all(http, target, "GET", paths)
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
            await asyncio.sleep(0.02)
            writer.transport.abort()

    async def ask() -> int:
        places = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(leave(number, places) for number in range(REQUESTS)))
        return REQUESTS

    return await beside(target, ask)


async def a_token(target: Target) -> None:
    """Give the attacker a token, because a key cannot create keys."""
    async with target.site.opened() as db:
        account = CheckedAccount(target.owners[0], 1, None)
        await db.write(tokens.add, account, text=TOKEN, lifetime=3600)


async def keys(target: Target) -> int:
    """Create API keys with a token as fast as the server allows."""

    async def ask() -> int:
        async with target.client(Authorization=f"Bearer {TOKEN}") as http:
            await _all(http, target, "POST", ["/api/keys"], {"name": "more"})
            async with http.get("/api/keys") as answer:
                made = len((await answer.json())["data"])
        if made > 50:
            target.findings.append(f"{made} keys of one account")
        return REQUESTS + 1

    return await beside(target, ask)


async def companies(target: Target) -> None:
    """Insert companies of the attacker, each with more contacts than one delete covers."""
    actor = Actor(target.owners[0], "api_key")

    async def one(tx: Tx) -> None:
        asks = asked(COMPANIES, {"name": "A"}, creating=True)
        made = await actions.create(tx, actor, COMPANIES, asks)
        await add_contacts(tx, actor.owner_id, 3_000, made.id)

    async with target.site.opened() as db:
        for _ in range(20):
            await db.write(one)


async def deletes_and_new_ones(target: Target) -> int:
    """Delete companies, create and link new ones, and list all of it, again and again."""

    async def ask() -> int:
        async with target.client(0) as http:
            found = (await _ask(http, "GET", "/api/companies?limit=100"))["data"]
            people = (await _ask(http, "GET", "/api/contacts?limit=100"))["data"]
            for turn in range(100):
                person = f"/api/contacts/{people[turn % len(people)]['id']}"
                if turn < len(found):
                    await _ask(http, "DELETE", f"/api/companies/{found[turn]['id']}")
                made = await _ask(http, "POST", "/api/companies", {"name": "Anew"})
                await _ask(http, "PUT", person, {"companyId": made.get("id")})
                await _ask(http, "GET", "/api/contacts?limit=100")
                await _ask(http, "DELETE", f"/api/companies/{made.get('id')}")
            await _settled(target)
            return 402 + len(found)

    return await beside(target, ask)


async def _ask(http: aiohttp.ClientSession, method: str, path: str, body: Any = None) -> Any:
    """Accept any response: an attacker ignores limits."""
    async with http.request(method, path, json=body) as response:
        return await response.json()


async def _settled(target: Target) -> None:
    """Wait for the deferred work of deletes."""

    async def over() -> bool:
        return not await query(target.site.url, "select 1 from pending_ends limit 1")

    await until(over, 120.0)


TRIES = 200
HONEST = 6
HONEST_SECONDS = 20.0
"""All sign-ins before have a turn first; that takes a few seconds on a quiet machine."""
VICTIM = "owner0@example.com"
PASSWORD = "a few random words"


async def passwords(target: Target) -> None:
    """Create the accounts for the attack and for the sign-ins."""
    hashed = argon2.PasswordHasher(time_cost=2, memory_cost=19456, parallelism=1).hash(PASSWORD)
    async with target.site.opened() as db:
        await db.write(users.set_password, target.owners[0], hashed)
        for number in range(HONEST):
            email = f"honest{number}@example.com"
            await db.write(users.add, email=email, name="Maria", password_hash=hashed)


async def tries(who: Callable[[int], tuple[str, str]], target: Target) -> int:
    """Try a wrong password for many accounts or from many addresses, which a proxy reports."""

    async def ask(http: aiohttp.ClientSession) -> int:
        sent = []
        for n in range(TRIES):
            sent.append(asyncio.create_task(_token(http, *who(n), "wrong horse")))
            # The attacker shares the machine and its loop with the measured sign-ins.
            await asyncio.sleep(0.002)
        await asyncio.gather(*sent)
        return TRIES

    return await _beside_sign_ins(target, ask)


async def credentials(headers: Callable[[Ids], dict[str, str]], target: Target) -> int:
    """Try a thousand credentials that do not exist."""
    ids = Ids()

    async def ask(http: aiohttp.ClientSession) -> int:
        async def several() -> None:
            for _ in range(50):
                async with http.get("/api/contacts", headers=headers(ids)) as answer:
                    await answer.read()
                    if answer.status != 401:
                        target.findings.append(f"a random credential got {answer.status}")

        await asyncio.gather(*(several() for _ in range(20)))
        return 1_000

    return await _beside_sign_ins(target, ask)


async def _beside_sign_ins(
    target: Target, attack: Callable[[aiohttp.ClientSession], Awaitable[int]]
) -> int:
    """Run an attack while others sign in with the right password, some time into it."""

    async def sign_in(http: aiohttp.ClientSession, number: int) -> None:
        await asyncio.sleep((number + 1) * 0.1)
        began, email = time.monotonic(), f"honest{number}@example.com"
        status = await _token(http, email, f"198.51.{number}.1", PASSWORD)
        took = time.monotonic() - began
        if status != 200 or took > HONEST_SECONDS:
            target.findings.append(f"an honest sign-in got {status} after {took:.1f} s")

    async with target.client() as http, target.client() as honest:
        attacking = asyncio.ensure_future(attack(http))
        await asyncio.gather(*(sign_in(honest, number) for number in range(HONEST)))
        return await attacking + HONEST


async def _token(http: aiohttp.ClientSession, email: str, address: str, password: str) -> int:
    body, behind = {"email": email, "password": password}, {"X-Forwarded-For": address}
    async with http.post("/api/auth/token", json=body, headers=behind) as answer:
        await answer.read()
        return answer.status


MANY_CONTACTS, MANY_DEALS = partial(many, CONTACTS, contact), partial(many, DEALS, deal)
ON_BOTH = {
    "search flood": Attack(partial(flood, SEARCHES), MANY_CONTACTS),
    "report flood": Attack(partial(flood, REPORTS), MANY_DEALS),
    "abandoned searches": Attack(abandoned, MANY_CONTACTS),
    "key flood": Attack(keys, a_token),
    "companies deleted, made and joined": Attack(deletes_and_new_ones, companies),
}
"""Attacks on code that differs between the engines."""
SIGN_INS = {
    "one account": Attack(
        partial(tries, lambda n: (VICTIM, f"203.{n // 250}.{n % 250}.1")), passwords
    ),
    "many accounts": Attack(
        partial(tries, lambda n: (f"{n}@example.com", f"2001:db8:7:{n:x}::1")), passwords
    ),
    "many networks": Attack(
        partial(tries, lambda n: (f"{n}@example.com", f"2001:db8:{n:x}::1")), passwords
    ),
    "one address": Attack(partial(tries, lambda n: (f"{n}@example.com", "203.0.113.9")), passwords),
    "random tokens": Attack(
        partial(credentials, lambda ids: {"Authorization": f"Bearer {tokens.make(ids)}"}), passwords
    ),
    "random keys": Attack(
        partial(credentials, lambda ids: {"X-API-Key": api_keys.make(ids)}), passwords
    ),
}
RUNS: list[tuple[str, Engine]] = [
    *((name, "sqlite") for name in ON_BOTH | SIGN_INS), *((name, "postgres") for name in ON_BOTH),
]  # fmt: skip
TURNS = {
    "search flood": "crowded_searches",
    "abandoned searches": "crowded_searches",
    "one account": "unlimited_sign_ins",
    "many accounts": "unlimited_sign_ins",
    "many networks": "unlimited_sign_ins",
}
"""Attacks that somebody else must feel when the product has no turns."""


@pytest.mark.parametrize(("name", "engine"), RUNS)
async def test_an_attack_stays_within_its_bars(name: str, engine: Engine) -> None:
    assert await run_attack(name, (ON_BOTH | SIGN_INS)[name], engine) == []


@pytest.mark.parametrize("name", TURNS)
async def test_without_turns_others_feel_it(name: str) -> None:
    findings = await run_attack(name, (ON_BOTH | SIGN_INS)[name], broken=TURNS[name])
    assert any(finding.startswith(("somebody", "an h")) for finding in findings), findings
