"""The databases of released versions, kept as SQL dumps, and what an upgrade must keep of them."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import asyncpg

from outbox import database
from outbox.clock import SystemClock
from outbox.database.migrate import pending
from outbox.ids import Ids
from tests.support.databases import SOURCES
from tests.support.engines import Engine
from tests.support.ledger import query
from tests.support.product import Product

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
