"""A database of each release is upgraded: nothing changes but its schema, and what waits arrives.

A refused upgrade changes nothing.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import aiohttp
import asyncpg
import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.migrate import pending
from outbox.ids import Ids
from tests.support.databases import SOURCES
from tests.support.engines import Engine, empty_database
from tests.support.faults import ENGINES
from tests.support.ledger import query
from tests.support.process import carteiro
from tests.support.product import NotStarted, Product
from tests.support.receiver import Received, receiver

DUMPS = Path(__file__).parent / "dumps"
KEY_FILE = DUMPS / "test.key"
PORT = 47471
"""The receiver's port in the dumps."""
RELEASES = sorted({file.name.partition(".")[0] for file in DUMPS.glob("*.sql")})
WAITING = ("Hanging", "Unclaimed", "Waiting")
"""The contacts whose events had not reached the webhook that is active."""
# Rows are as old as the dump; retention must not end them during a test.
KEEP = {"CARTEIRO_RETENTION__DELIVERIES_DAYS": "3650", "CARTEIRO_RETENTION__EVENTS_DAYS": "3650"}

KEPT = {
    "contacts": "select id, owner_id, version, created_at, name, email from contacts order by id",
    "events": "select id, name, record_id, seq, body, body_digest from events order by seq",
    "webhooks": "select id, owner_id, events, state, secret, created_at from webhooks order by id",
    "keys": "select id, name from api_keys order by id",
    "deliveries": """
        select id, event_id, webhook_id, origin, created_at,
          case when state in ('ready', 'in_flight') then 'waits' else state end as state
        from deliveries order by id""",
    "attempts": """
        select delivery_id, number, kind, outcome, status, started_at, url, request_headers
        from attempts order by delivery_id, number""",
}
SETTLED = """
select count(*) as n from deliveries d join webhooks w on w.id = d.webhook_id
where w.state = 'active' and d.state in ('ready', 'in_flight')
"""
SCHEMA: Mapping[Engine, Sequence[str]] = {
    "sqlite": ["select sql from sqlite_master order by 1"],
    "postgres": [
        "select table_name, column_name, data_type, is_nullable, column_default"
        " from information_schema.columns where table_schema = 'public' order by 1, 2",
        "select indexdef from pg_indexes where schemaname = 'public' order by 1",
        "select conrelid::regclass::text, pg_get_constraintdef(oid) from pg_constraint"
        " where connamespace = 'public'::regnamespace order by 1, 2",
    ],
}
LEDGER = "select * from schema_migrations order by component, number"

Rows = list[tuple[object, ...]]


async def load(release: str, engine: Engine, url: str) -> None:
    """Fill the empty database at `url` with the dump of a release."""
    await run_script(url, (DUMPS / f"{release}.{engine}.sql").read_text())


async def run_script(url: str, script: str) -> None:
    """Run the statements of `script`."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as db:
            db.executescript(script)
        return
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(script)
    finally:
        await connection.close()


async def everything(engine: Engine, url: str) -> list[Rows]:
    """Return the schema, the ledger and the rows that an upgrade keeps."""
    queries = [*SCHEMA[engine], LEDGER, *KEPT.values()]
    return [await query(url, sql) for sql in queries]


async def kept(url: str) -> Mapping[str, Rows]:
    """Return the rows that an upgrade keeps, by table."""
    return {table: await query(url, sql) for table, sql in KEPT.items()}


async def send_to(url: str, port: int) -> None:
    """Let the webhooks of the dump send to the receiver at `port`."""
    await run_script(url, f"update webhooks set url = replace(url, ':{PORT}/', ':{port}/')")


async def settled(url: str, seconds: float = 30) -> None:
    """Return when no delivery of an active webhook waits."""
    async with asyncio.timeout(seconds):
        while (await query(url, SETTLED))[0][0]:
            await asyncio.sleep(0.05)


async def missing(url: str) -> list[str]:
    """Return the migrations that the database still needs."""
    db = await database.open(url, clock=SystemClock(), ids=Ids())
    try:
        return await pending(db, SOURCES)
    finally:
        await db.close()


def product(folder: Path, url: str, **environment: str) -> Product:
    """Return the server of this version on the database of a dump."""
    key_file = folder / "test.key"
    shutil.copyfile(KEY_FILE, key_file)
    key_file.chmod(0o600)
    return Product(folder, url, key_file, environment=KEEP | environment)


def names(requests: Sequence[Received]) -> list[str]:
    """Return the names of the contacts in what a receiver got."""
    return [str(json.loads(request.body)["data"]["name"]) for request in requests]


async def write(server: Product, folder: Path, url: str) -> None:
    """Write a contact with a new key."""
    settings = {
        "CARTEIRO_DATABASE__URL": url, "CARTEIRO_SECRETS__KEY_FILE": str(folder / "test.key")
    }  # fmt: skip
    done = await asyncio.to_thread(
        carteiro, "key", "add", "ana@example.com", "--name", "new", folder=folder, **settings
    )
    assert done.returncode == 0, done.stderr
    headers = {"X-API-Key": done.stdout.strip()}
    async with (
        aiohttp.ClientSession(server.address, headers=headers) as http,
        http.post("/api/contacts", json={"name": "Written"}) as answer,
    ):
        assert answer.status == 201, await answer.text()


@ENGINES
@pytest.mark.parametrize("release", RELEASES)
async def test_an_upgrade_keeps_all_rows_and_delivers_what_waits(
    release: str, engine: Engine, tmp_path: Path
) -> None:
    async with empty_database(engine, tmp_path) as url, receiver() as target:
        await load(release, engine, url)
        await send_to(url, int(target.url.rpartition(":")[2].partition("/")[0]))
        before = await kept(url)
        server = product(tmp_path, url)
        try:
            await server.start()
            await target.wait(len(WAITING))
            await settled(url)
            after = await kept(url)
            arrived = names(target.requests)
            await write(server, tmp_path, url)
            await target.wait(len(WAITING) + 1)
            assert names(target.requests[len(WAITING) :]) == ["Written"]
            assert await server.stop() == 0
            assert await missing(url) == []
        finally:
            await server.close()
        assert sorted(arrived) == sorted(WAITING)
        for table in ("contacts", "events", "webhooks", "keys"):
            assert after[table] == before[table], table
        # Attempts of the dump stay as they were; each delivery that waited has one more.
        old = set(before["attempts"])
        assert old <= set(after["attempts"])
        assert len(after["attempts"]) == len(old) + len(WAITING)
        changed = [
            (then[-1], now[-1])
            for then, now in zip(before["deliveries"], after["deliveries"], strict=True)
            if then != now
        ]
        assert changed == [("waits", "delivered")] * len(WAITING)
        states = Counter(str(row[-1]) for row in after["deliveries"])
        print(json.dumps({"upgrade": release, "engine": engine, **states, "arrived": len(arrived)}))
        assert states == {"delivered": 4, "exhausted": 1, "waits": 5}


REFUSED = {
    "a changed migration": (
        "update schema_migrations set checksum = 'x' where component = 'gateway' and number = 5",
        "gateway 0005_billing was changed",
    ),
    "a newer schema": (
        "insert into schema_migrations (component, number, name, checksum, applied_at)"
        " values {later}",
        "the database schema is newer than this program (gateway 0099",
    ),
    "a gap": (
        "delete from schema_migrations where component = 'gateway' and number = 4",
        "has the migration gateway 0005 but not 0004",
    ),
}
LATER = ", ".join(f"('gateway', {n}, '{n:04d}_later', 'x', 1)" for n in range(6, 100))


@ENGINES
@pytest.mark.parametrize("fault", REFUSED)
async def test_a_refused_upgrade_changes_nothing(
    fault: str, engine: Engine, tmp_path: Path
) -> None:
    """The outbox's migrations would come first, and the fault is in the gateway's."""
    statement, message = REFUSED[fault]
    async with empty_database(engine, tmp_path) as url:
        await load("b7822d0", engine, url)
        await run_script(url, statement.format(later=LATER))
        before = await everything(engine, url)
        server = product(tmp_path, url)
        try:
            with pytest.raises(NotStarted) as refused:
                await server.start()
        finally:
            await server.close()
        assert message in str(refused.value)
        assert await everything(engine, url) == before
        ledger = await query(url, LEDGER)
        assert len([row for row in ledger if row[0] == "outbox"]) == 1
