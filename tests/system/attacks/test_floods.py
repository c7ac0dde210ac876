"""Floods of bodies, forms and unread answers stay within their bars (R37)."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

import aiohttp
import pytest

from gateway.domain.contacts.tasks import TASKS
from gateway.records import store
from gateway.records.values.strictjson import MOST_VALUES
from outbox.database.transaction import Tx
from tests.gateway.graphql.test_limits import abuses
from tests.system.attacks.attack import Attack, Target, run_attack

MEBIBYTE = 1 << 20
URLENCODED = "application/x-www-form-urlencoded"
# In punycode, each character comes before all others, so the decoder copies them each time.
INSERTIONS = b"email=-" + b"a" * (MEBIBYTE // 8)
PART = b'--B\r\nContent-Disposition: form-data; name="email"\r\n\r\na\r\n'
PARTS = (
    (b'{"name":"a","more":[', b"1.1,", b"1]}"),
    (b'{"name":"a",', b'"b":1.1,', b'"b":1.1}'),
    (b'{"name":"a","tags":[', b'"a",', b'"a"]}'),
    (b'{"name":"a","more":[', b"{},", b"{}]}"),
)
"""How a body begins, what it repeats, how it ends."""
AT_ONCE = 10


async def form(body: bytes, kind: str, times: int, target: Target) -> int:
    """Send a form without an account."""

    async def once(http: aiohttp.ClientSession) -> None:
        # Refused before all of it was sent, or never answered.
        with suppress(aiohttp.ClientError, TimeoutError):
            async with http.post(
                "/console/sign-in", data=body, headers={"Content-Type": kind}
            ) as response:
                await response.read()

    async with target.client() as http:
        for _ in range(0, times, AT_ONCE):
            await asyncio.gather(*(once(http) for _ in range(min(times, AT_ONCE))))
    return times


async def values(most: int, target: Target) -> int:
    """Send bodies of very many values, which compressed are a few kilobytes, with one key."""
    bodies = []
    for before, piece, after in PARTS:
        times = (MEBIBYTE - len(before) - len(after)) // len(piece)
        bodies.append(gzip.compress(before + piece * min(times, most) + after))
    async with target.client(0, Content_Type="application/json", Content_Encoding="gzip") as http:

        async def once(body: bytes) -> None:
            async with http.post("/api/contacts", data=body) as answer:
                await answer.read()

        for body in bodies * 3:
            await asyncio.gather(*(once(body) for _ in range(AT_ONCE)))
    return len(bodies) * 3 * AT_ONCE


@asynccontextmanager
async def _held(
    target: Target, says: bytes, times: int, addresses: tuple[str, ...], apart: float
) -> AsyncIterator[list[asyncio.StreamWriter]]:
    """Hold so many connections, which have said this."""
    writers = []
    try:
        for number in range(times):
            with suppress(OSError):
                _, writer = await asyncio.open_connection(
                    "127.0.0.1", target.port, limit=4_096,
                    local_addr=(addresses[number % len(addresses)], 0),
                )  # fmt: skip
                writers.append(writer)
                if says:
                    writer.write(says)
            # The measurement covers open connections, not their simultaneous arrival.
            await asyncio.sleep(apart)
        yield writers
    finally:
        for writer in writers:
            writer.transport.abort()
        await asyncio.gather(*(w.wait_closed() for w in writers), return_exceptions=True)


async def unread(
    line: str, times: int, target: Target, *, head: str = "", body: bytes | None = b"",
    key: bool = True,
) -> int:  # fmt: skip
    """Send the same on many connections, and read nothing of the responses."""
    who = f"X-API-Key: {target.keys[0]}\r\n" if key else ""
    sent = f"{line} HTTP/1.1\r\nHost: a\r\n{who}{head}".encode()
    whole = sent if body is None else sent + b"\r\n" + body
    async with _held(target, whole, times, ("127.0.0.1",), 0.01):
        # By then each response is completely in memory.
        await asyncio.sleep(8.0)
    return times


LONG = "x" * 65_535
CALENDAR = "GET /api/tasks/calendar?start=2025-12-01&end=2025-12-02"
"""It has 64 MB."""


async def _tasks(tx: Tx, owner: str) -> None:
    for _ in range(50):
        values = {"title": "Long", "description": LONG, "due_at": 1_764_600_000_000_000,
                  "due_day": False, "priority": "low", "completed": False}  # fmt: skip
        await store.insert(tx, TASKS, owner, values)


async def tasks(target: Target) -> None:
    async with target.site.opened() as db:
        for _ in range(20):
            await db.write(_tasks, target.owners[0])


async def a_store(target: Target) -> None:
    async with target.client(0) as http:
        store = {"hostname": "shop.example", "name": "Shop"}
        async with http.post("/api/stores", json=store) as made:
            assert made.status == 201, await made.text()


async def documents(only: str, target: Target) -> int:
    """Send GraphQL documents that are written to keep a server busy."""
    chosen = [abuse for abuse in abuses() if only in ("", abuse.name)]
    async with target.client() as http:
        for abuse in chosen:
            body = {"query": abuse.query, "variables": abuse.variables}
            for _ in range(3):
                async with http.post("/graphql", json=body) as answer:
                    errors = (await answer.json(content_type=None)).get("errors")
            code = errors[0]["extensions"]["code"] if errors else ""
            if (answer.status, code) != (200, abuse.code):
                target.findings.append(f"{abuse.name}: {answer.status} {code}")
    return 3 * len(chosen)


JSON = "Content-Type: application/json\r\nContent-Length: 1000000\r\n"
FORM = f"Content-Type: {URLENCODED}\r\nContent-Length: 65000\r\n"
LINES = "".join(f"X-Line-{n}: {'x' * 8_000}\r\n" for n in range(120))
ATTACKS = {
    "punycode form": Attack(partial(form, INSERTIONS, f"{URLENCODED}; charset=punycode", 2)),
    "form of 999 parts": Attack(
        partial(form, PART * 999 + b"--B--\r\n", "multipart/form-data; boundary=B", 10)
    ),
    "forms of a megabyte": Attack(
        partial(form, b"email=" + b"%41" * (MEBIBYTE // 3 - 10), URLENCODED, 30)
    ),
    "forms of 16,000 fields": Attack(partial(form, b"a=b&" * 16_000, URLENCODED, 30)),
    "dear documents": Attack(partial(documents, ""), a_store),
    "3,000 fields of one name": Attack(partial(documents, "3,000 fields of one name"), a_store),
    "very many values": Attack(partial(values, MEBIBYTE)),
    "as many values as may be": Attack(partial(values, MOST_VALUES // 2 - 10)),
    "ten slow readers of a calendar": Attack(partial(unread, CALENDAR, 10), tasks),
    "calendars that nobody reads": Attack(partial(unread, CALENDAR, 100), tasks),
    "bodies that do not end": Attack(
        partial(unread, "POST /api/contacts", 180, head=JSON, body=b"x" * 999_999)
    ),
    "anonymous bodies that do not end": Attack(
        partial(unread, "POST /console/sign-in", 400, head=FORM, body=b"x" * 64_999, key=False)
    ),
    "heads that do not end": Attack(
        partial(unread, "GET /api/contacts", 400, head=LINES, body=None, key=False)
    ),
}
GUARDS = {
    "any_form": "punycode form",
    "any_document": "3,000 fields of one name",
    "any_number_of_values": "very many values",
    "no_budgets": "ten slow readers of a calendar",
    "any_head": "heads that do not end",
}
"""Guards to turn off, and an attack that must then succeed."""


@pytest.mark.parametrize("name", ATTACKS)
async def test_a_flood_stays_within_its_bars(name: str) -> None:
    assert await run_attack(name, ATTACKS[name]) == []


@pytest.mark.parametrize("broken", GUARDS)
async def test_without_its_guard_an_attack_shows(broken: str) -> None:
    name = GUARDS[broken]
    assert await run_attack(name, ATTACKS[name], broken=broken)
