"""An import that is killed on its way imports each line once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.support.ledger import query

SEED = 1


@asynccontextmanager
async def account(engine: Engine) -> AsyncIterator[tuple[Deployed, str, str]]:
    """Serve an owner; yield also who it is and its key."""
    async with deployed(engine, SEED, ports=[9], owners=1, webhooks=0) as site:
        [(owner, key)] = site.tenants.keys.items()
        yield site, owner, key


async def until_done(site: Deployed, key: str, path: str, lines: int) -> dict[str, Any]:
    """Wait until so many lines of an import are done, or it has ended."""
    headers = {"X-API-Key": key}
    async with aiohttp.ClientSession(site.product.address, headers=headers) as http:
        async with asyncio.timeout(120):
            while True:
                async with http.get(path) as answer:
                    body: dict[str, Any] = await answer.json()
                if body["done"] >= lines or body["state"] != "running":
                    return body


@ENGINES
async def test_an_import_killed_twice_imports_each_line_once(engine: Engine) -> None:
    count = 6_000
    lines = [
        f"Ana {n},{'x' if n % 1000 == 7 else f'a{n}@example.com'}\r\n" for n in range(count)
    ]  # fmt: skip
    data = ("name,email\r\n" + "".join(lines)).encode()
    async with account(engine) as (site, _, key):
        headers = {"X-API-Key": key, "Content-Type": "text/csv"}
        async with (
            aiohttp.ClientSession(site.product.address, headers=headers) as http,
            http.post("/api/import/contacts?mode=strict", data=data) as answer,
        ):
            path = f"/api/imports/{(await answer.json())['id']}"
        for part in (4, 2):
            half = await until_done(site, key, path, count // part)
            assert half["state"] == "running"
            await site.kill()
            await site.product.start()
        body = await until_done(site, key, path, count + 1)
        assert (body["state"], body["done"], body["created"], body["faulty"]) == (
            "done", count, count - 6, 6,
        ), body  # fmt: skip
        assert [one["line"] for one in body["faults"]] == [n * 1000 + 9 for n in range(6)]
        for what, expected in (
            ("count(*) from contacts", count - 6),
            ("count(distinct email_folded) from contacts", count - 6),
            ("count(distinct record_id) from events where name = 'contact.created'", count - 6),
            ("count(*) from events", count - 6),
            ("count(*) from import_lines", 0),
        ):
            assert await query(site.url, f"select {what}") == [(expected,)], what
