"""Work that an owner may start and that goes on by itself; each returns once it has ended."""

from __future__ import annotations

import asyncio
import io
import time
from collections import Counter
from collections.abc import Sequence

import aiohttp

from outbox import webhooks as endpoints
from outbox.database.transaction import Tx
from outbox.ids import Ids
from outbox.queue.replays import jobs
from outbox.sending.request import new_secret
from outbox.webhooks import Draft
from outbox.webhooks.key_files import read_key_file
from outbox.webhooks.secrets import KeyRing
from tests.support.ledger import query
from tests.support.tenants import EVENT
from tests.support.waiting import until
from tests.system.attacks.attack import Target

SECONDS = 240.0
PERSONS = 100
WEBHOOKS = 10_000
CSV = {"Content-Type": "text/csv"}
SHOP = "shop.example"
LIST = f'products(hostname: "{SHOP}", first: 100)'
NODE = "nodes { id title categories { name } }"
NESTED = f"{{ {' '.join(f'a{n}: {LIST} {{ {NODE} }}' for n in range(12))} }}"


async def erasures(target: Target) -> Counter[int]:
    """Erase persons whose names begin alike, among many records."""
    got: Counter[int] = Counter()
    async with target.client(0) as http:
        for number in range(1, PERSONS // 100 + 1):
            async with http.get(f"/api/contacts?limit=100&page={number}") as answer:
                some = (await answer.json())["data"]
            for one in some:
                async with http.post(f"/api/contacts/{one['id']}/erase") as answer:
                    got[answer.status] += 1
                await asyncio.sleep(0.03)
    await _ended(target, "select count(*) from person_erasures where completed_at is null")
    return got


async def imports(lines: int, characters: int, target: Target) -> Counter[int]:
    """Import a file with so many lines, each with notes of so many characters."""
    notes = "a b " * (characters // 4)

    text = "name,notes\n" + "".join(f"Maria da Silva {n},{notes}\n" for n in range(lines))
    data = io.BytesIO(text.encode())
    async with target.client(0) as http:
        async with http.post("/api/import/contacts", data=data, headers=CSV) as answer:
            got = Counter({answer.status: 1})
            if answer.status != 202:
                target.findings.append(f"an import got {await answer.text()}")
    await _ended(target, "select count(*) from imports where state in ('waiting', 'running')")
    return got


async def snapshots(target: Target) -> Counter[int]:
    """Send all records of an owner to its webhook."""
    owner = target.owners[0]
    [webhook] = target.site.tenants.webhooks[owner]
    async with target.site.opened() as db:
        await db.write(
            jobs.create_snapshot, owner_id=owner, webhook_id=webhook, user_id=owner,
            names=(EVENT,), total=1, rate=jobs.FASTEST,
        )  # fmt: skip
    await _ended(target, "select count(*) from jobs where state = 'running'")
    return Counter()


async def hooked(target: Target) -> None:
    """Insert 10,000 webhooks of the owner for other events, and a hundred for these."""
    ring = read_key_file(target.site.tenants.key_file, Ids())
    async with target.site.opened() as db:
        for first in range(0, WEBHOOKS, 500):
            await db.write(_hooks, target.owners[0], ring, range(first, first + 500))


async def _hooks(tx: Tx, owner_id: str, ring: KeyRing, numbers: Sequence[int]) -> None:
    for number in numbers:
        event = EVENT if number % 100 == 0 else "deal.created"
        await endpoints.create(
            tx, owner_id=owner_id, draft=Draft(f"http://127.0.0.1:9/{number}", (event,)),
            secret=new_secret(Ids().token(32)), ring=ring,
        )  # fmt: skip


async def writes(target: Target) -> Counter[int]:
    """Write at the limit."""
    got: Counter[int] = Counter()
    end = time.monotonic() + 12.0

    async def several(http: aiohttp.ClientSession) -> None:
        while time.monotonic() < end:
            async with http.post("/api/contacts", json={"name": "Maria"}) as answer:
                await answer.read()
                got[answer.status] += 1

    async with target.client(0) as http:
        await asyncio.gather(*(several(http) for _ in range(50)))
    return got


async def _ended(target: Target, left: str) -> None:
    async def none() -> bool:
        [(count,)] = await query(target.site.url, left)
        return not count

    try:
        await until(none, SECONDS)
    except (AssertionError, TimeoutError):
        target.findings.append(f"its work does not end in {SECONDS:.0f} s")


async def a_shop(target: Target) -> None:
    """Create a store of the owner with a hundred products in a category."""
    async with target.client(0) as http:
        store = await _made(http, "stores", hostname=SHOP, name="Shop")
        category = await _made(http, "categories", storeId=store, name="All")
        for number in range(100):
            await _made(
                http, "products", storeId=store, name=f"Coffee {number}", price=9.9, active=True,
                categoryIds=[category],
            )  # fmt: skip


async def _made(http: aiohttp.ClientSession, plural: str, **values: object) -> str:
    async with http.post(f"/api/{plural}", json=values) as answer:
        assert answer.status == 201, await answer.text()
        return str((await answer.json())["id"])


async def nested_lists(target: Target) -> Counter[int]:
    """Ask for as many objects as a document may, in lists of lists."""
    got: Counter[int] = Counter()
    end = time.monotonic() + 12.0

    async def several(http: aiohttp.ClientSession) -> None:
        while time.monotonic() < end:
            async with http.post("/graphql", json={"query": NESTED}) as answer:
                text = await answer.read()
                if answer.status == 200 and b'"nodes"' not in text:
                    target.findings.append(text[:200].decode())
                got[answer.status] += 1

    async with target.client(X_Forwarded_For="203.0.113.9") as http:
        await asyncio.gather(*(several(http) for _ in range(50)))
    return got
