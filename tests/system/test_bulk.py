"""Files of many records: constant memory, the same records on the other engine, kills."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from gateway.domain.imports.importing import Importing
from gateway.records.store import tally
from outbox.database.transaction import Tx
from tests.gateway.rest.test_imports import imported
from tests.gateway.rest.test_round_trips import served
from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.support.ledger import query

SEED = 1
MANY = 100_000
MOST_GROWTH_MIB = 32.0
FIRST_BYTE_SECONDS = 0.1
OF_NONE = 10.0
"""Or so many times what an empty file takes, on a machine that is slow by itself."""
_CONTACTS = """
insert into contacts (id, owner_id, version, created_at, name, email, email_folded, phone, notes,
  tags, source, folded, sort_name)
select $2 || n, $3, 1, $4 + n, 'Contato ' || n, 'c' || n || '@example.com',
  'c' || n || '@example.com', '+55 11 98888-7777', '=1+1 and some words about this person',
  '["vip","feira"]', 'import', 'contato ' || n, 'contato ' || n
from (select cast(n as text) as n, n as i from
/*sqlite (with recursive c (n) as (select 100000 union all select n + 1 from c where n < $1)
  select n from c) as numbers*/
/*postgres generate_series(100000, cast($1 as bigint)) as numbers (n)*/) as texts
"""


async def _stock(tx: Tx, owner_id: str, count: int) -> None:
    """Insert contacts straight into their table."""
    sql = _CONTACTS.replace("$4 + n", "$4 + i")
    await tx.run(sql, 99_999 + count, tx.new_id()[:18], owner_id, tx.now)
    tally(tx, owner_id, "contacts", {0: count})


@asynccontextmanager
async def account(engine: Engine) -> AsyncIterator[tuple[Deployed, str, str]]:
    """Serve an owner; yield also who it is and its key."""
    async with deployed(engine, SEED, ports=[9], owners=1, webhooks=0) as site:
        [(owner, key)] = site.tenants.keys.items()
        yield site, owner, key


async def read_export(site: Deployed, key: str, path: str) -> tuple[float, int, float]:
    """Return seconds to the first byte of the body, lines, and the most memory meanwhile."""
    began, lines, most, first = time.monotonic(), 0, 0.0, 0.0
    async with (
        aiohttp.ClientSession(site.product.address, headers={"X-API-Key": key}) as http,
        http.get(path) as answer,
    ):
        async for piece in answer.content.iter_any():
            first = first or time.monotonic() - began
            lines += piece.count(b"\n")
            most = max(most, site.product.rss())
    return first, lines, most


@ENGINES
async def test_an_export_of_100_000_contacts(engine: Engine) -> None:
    async with account(engine) as (site, owner, key):
        async with site.opened() as db:
            await db.apart("migration").write(_stock, owner, MANY)
        await site.product.get("/api/contacts?limit=100", key)
        quiet, _, _ = await read_export(site, key, "/api/export/companies.csv")
        before, firsts = site.product.rss(), list[float]()
        for words in ("", "?separator=;", "?search=contato"):
            first, lines, most = await read_export(site, key, f"/api/export/contacts.csv{words}")
            print(f"{engine}, {words or 'all'}: first byte {first:.3f} s, +{most - before:.1f} MiB")
            assert lines == MANY + 1
            assert most - before <= MOST_GROWTH_MIB
            firsts.append(first)
        assert min(firsts) <= max(FIRST_BYTE_SECONDS, OF_NONE * quiet)


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


async def test_the_runner_that_another_replaces_does_no_harm(tmp_path: Path) -> None:
    async with served("sqlite", tmp_path / "a") as (api, ana):
        await imported(api, ana, "contacts", "name\n" + "".join(f"A{n}\n" for n in range(500)))
        await Importing(api.db).run_once()
        assert (await ana.get("/api/contacts")).body["total"] == 500
