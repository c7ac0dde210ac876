"""Files of many records: constant memory, the same records on the other engine, kills."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.accounts import users
from gateway.domain.imports.importing import Importing
from gateway.records.store import tally
from outbox import database
from outbox.clock import SystemClock
from outbox.database.migrate import migrate
from outbox.database.transaction import Database, Tx
from outbox.ids import Ids
from tests.gateway.rest.test_exports import ODD
from tests.gateway.rest.test_imports import everything, imported
from tests.support.databases import SOURCES
from tests.support.engines import Engine, empty_database
from tests.support.process import Serving, carteiro, serving_process
from tests.support.rest import UNLIMITED, Person, RestApi
from tests.support.site import serving

EMAIL = "ana@example.com"
MANY = 100_000
MOST_GROWTH = 32 * 1024 * 1024
FIRST_BYTE_SECONDS = 0.1
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
ENGINES: tuple[Engine, Engine] = ("sqlite", "postgres")

pytestmark = pytest.mark.slow
both = pytest.mark.parametrize("engine", ENGINES)


async def _stock(tx: Tx, owner_id: str, count: int) -> None:
    """Insert contacts straight into their table."""
    sql = _CONTACTS.replace("$4 + n", "$4 + i")
    await tx.run(sql, 99_999 + count, tx.new_id()[:18], owner_id, tx.now)
    tally(tx, owner_id, "contacts", {0: count})


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Database]:
    db = await database.open(url, clock=SystemClock(), ids=Ids())
    try:
        yield db
    finally:
        await db.close()


@asynccontextmanager
async def account(engine: Engine, folder: Path) -> AsyncIterator[tuple[str, str]]:
    """Return the address of a migrated database and the key of its account."""
    async with empty_database(engine, folder) as url:
        settings = {"CARTEIRO_DATABASE__URL": url}
        if engine == "postgres":
            done = carteiro("secrets", "init", folder=folder, **settings)
            assert done.returncode == 0, done.stderr
        user = ("user", "add", EMAIL, "--name", "Ana", "--password-stdin")
        done = carteiro(*user, folder=folder, stdin="correct horse battery\n", **settings)
        assert done.returncode == 0, done.stderr
        done = carteiro("key", "add", EMAIL, "--name", "t", folder=folder, **settings)
        yield url, done.stdout.strip()


@contextmanager
def running(folder: Path, url: str) -> Iterator[Serving]:
    limits = {f"CARTEIRO_LIMITS__{name}_PER_SECOND": "0" for name in ("READ", "WRITE")}
    with serving_process(folder, CARTEIRO_DATABASE__URL=url, **limits) as product:
        yield product


def rss(product: Serving) -> int:
    status = Path(f"/proc/{product.process.pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


def read_export(product: Serving, key: str, path: str) -> tuple[float, int, int]:
    """Return seconds to the first byte of the body, lines, and the most memory meanwhile."""
    connection = http.client.HTTPConnection("127.0.0.1", product.port, timeout=60)
    began = time.monotonic()
    connection.request("GET", path, headers={"X-API-Key": key})
    response = connection.getresponse()
    first = response.read(1)
    seconds, most = time.monotonic() - began, rss(product)
    lines = first.count(b"\n")
    while piece := response.read(262_144):
        lines += piece.count(b"\n")
        most = max(most, rss(product))
    connection.close()
    return seconds, lines, most


@pytest.mark.timed
@both
async def test_an_export_of_100_000_contacts(engine: Engine, tmp_path: Path) -> None:
    async with account(engine, tmp_path) as (url, key):
        async with opened(url) as db:
            owner = await db.read(users.by_email, EMAIL)
            assert owner is not None
            await db.apart("migration").write(_stock, owner["id"], MANY)
        with running(tmp_path, url) as product:
            product.ask("/api/contacts?limit=100", headers={"X-API-Key": key})
            read_export(product, key, "/api/export/companies.csv")
            before = rss(product)
            runs = []
            for query in ("", "?separator=;", "?search=contato"):
                began = time.monotonic()
                first, lines, most = read_export(product, key, f"/api/export/contacts.csv{query}")
                whole = time.monotonic() - began
                assert lines == MANY + 1
                runs.append((first, most - before))
                print(
                    f"{engine}, {query or 'all'}: first byte {first * 1000:.0f} ms, whole "
                    f"{whole:.1f} s, memory +{(most - before) / 1024**2:.1f} MiB"
                )
            assert min(first for first, _ in runs) <= FIRST_BYTE_SECONDS
            assert max(growth for _, growth in runs) <= MOST_GROWTH


def upload(product: Serving, key: str, path: str, data: bytes) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", product.port, timeout=60)
    connection.request("POST", path, data, {"X-API-Key": key, "Content-Type": "text/csv"})
    response = connection.getresponse()
    body: dict[str, Any] = json.loads(response.read())
    connection.close()
    assert response.status == 202, body
    return body


def until_done(product: Serving, key: str, path: str, lines: int) -> dict[str, Any]:
    """Wait until so many lines of an import are done, or it has ended."""
    end = time.monotonic() + 90
    while True:
        body: dict[str, Any] = json.loads(product.ask(path, headers={"X-API-Key": key})[1])
        if body["done"] >= lines or body["state"] != "running":
            return body
        assert time.monotonic() < end, body


@both
async def test_an_import_killed_twice_imports_each_line_once(
    engine: Engine, tmp_path: Path
) -> None:
    count = 6_000
    lines = [
        f"Ana {n},{'x' if n % 1000 == 7 else f'a{n}@example.com'}\r\n" for n in range(count)
    ]  # fmt: skip
    data = ("name,email\r\n" + "".join(lines)).encode()
    async with account(engine, tmp_path) as (url, key):
        with running(tmp_path, url) as product:
            job = upload(product, key, "/api/import/contacts", data)
            path = f"/api/imports/{job['id']}"
            until_done(product, key, path, count // 4)
            product.process.kill()
            product.process.wait(10)
        with running(tmp_path, url) as product:
            half = until_done(product, key, path, count // 2)
            assert half["state"] == "running"
            product.process.kill()
            product.process.wait(10)
        with running(tmp_path, url) as product:
            body = until_done(product, key, path, count + 1)
            product.end()
        assert (body["state"], body["done"], body["created"], body["faulty"]) == (
            "done", count, count - 6, 6,
        ), body  # fmt: skip
        assert [one["line"] for one in body["faults"]] == [n * 1000 + 9 for n in range(6)]
        async with opened(url) as db:
            for sql, expected in (
                ("select count(*) as n from contacts", count - 6),
                ("select count(distinct email_folded) as n from contacts", count - 6),
                ("select count(*) as n from events where name = 'contact.created'", count - 6),
                ("select count(distinct record_id) as n from events", count - 6),
                ("select count(*) as n from import_lines", 0),
            ):
                row = await db.read(_one, sql)
                assert row == expected, sql


async def _one(tx: Tx, sql: str) -> int:
    row = await tx.one(sql)
    return 0 if row is None else int(row["n"])


@asynccontextmanager
async def served(engine: Engine, folder: Path) -> AsyncIterator[tuple[RestApi, Person]]:
    folder.mkdir()
    async with empty_database(engine, folder) as url, opened(url) as db:
        await migrate(db, SOURCES)
        async with serving(db, UNLIMITED) as site:
            api = RestApi(site)
            yield api, await api.person()


@pytest.mark.parametrize("engines", [ENGINES, ENGINES[::-1]], ids=["to-postgres", "to-sqlite"])
async def test_the_other_engine_gets_the_same_records(
    engines: tuple[Engine, Engine], tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        here, ana = await stack.enter_async_context(served(engines[0], tmp_path / "a"))
        there, bia = await stack.enter_async_context(served(engines[1], tmp_path / "b"))
        for plural in ("contacts", "companies", "products"):
            items = [_record(plural, number, text) for number, text in enumerate(ODD)]
            made = await ana.post(f"/api/{plural}/batch", {"items": items, "atomic": True})
            assert made.status == 207, made.text
            file = (await ana.get(f"/api/export/{plural}.csv")).text
            body = await imported(there, bia, plural, file)
            assert (body["created"], body["faulty"]) == (len(ODD), 0), body
            assert await everything(bia, plural) == await everything(ana, plural)
            back = (await bia.get(f"/api/export/{plural}.csv")).text
            home = await here.person()
            body = await imported(here, home, plural, back)
            assert (body["created"], body["faulty"]) == (len(ODD), 0), body
            assert await everything(home, plural) == await everything(ana, plural)


def _record(plural: str, number: int, text: str) -> dict[str, Any]:
    """Return a create with texts that a file must keep exactly."""
    name = {"name": f"{text}ção ☕ {number:02}"} if text.strip() else {"name": f"x{number:02}"}
    if plural == "contacts":
        return name | {
            "email": f"{number // 3}@x.com", "phone": "+55 (11) 98888-7777", "notes": text,
            "position": "", "tags": [text or "t", "a;b"], "consent": number % 2 == 0,
            "source": "storefront",
        }  # fmt: skip
    if plural == "companies":
        return name | {"industry": text, "notes": "", "size": "1000+", "website": "x.com"}
    images = [{"url": "https://x.com/a.png", "alt": text}]
    return name | {
        "price": number + 0.1, "sku": f"{number}{text}", "description": text, "stock": number,
        "images": images, "categories": [text or "c"], "active": False, "weightGrams": None,
    }  # fmt: skip


async def test_the_runner_that_another_replaces_does_no_harm(tmp_path: Path) -> None:
    async with served("sqlite", tmp_path / "a") as (api, ana):
        await imported(api, ana, "contacts", "name\n" + "".join(f"A{n}\n" for n in range(500)))
        await Importing(api.db).run_once()
        assert (await ana.get("/api/contacts")).body["total"] == 500
