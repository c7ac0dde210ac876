"""Backups of older versions are migrated; the schema of a restored database is the whole one."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from pathlib import Path

import asyncpg
import pytest

import gateway
import outbox
from outbox import database
from outbox.clock import SystemClock
from outbox.database.migrate import migrate
from outbox.database.transaction import Tx
from outbox.ids import Ids
from tests.support.process import command

OLD_OUTBOX, OLD_GATEWAY = 1, 7
SCHEMA = {
    "sqlite": [
        "select type, name, tbl_name, sql from sqlite_master order by type, name",
        "select component, number, checksum from schema_migrations order by component, number",
    ],
    "postgres": [
        "select tablename, indexname, indexdef from pg_indexes"
        " where schemaname = current_schema() order by 1, 2",
        "select conrelid::regclass::text, conname, pg_get_constraintdef(oid), convalidated"
        " from pg_constraint where connamespace = current_schema()::regnamespace order by 1, 2",
        "select tgrelid::regclass::text, tgname, tgenabled::text from pg_trigger"
        " where not tgisinternal order by 1, 2",
        "select table_name, column_name, data_type, is_nullable, column_default, collation_name"
        " from information_schema.columns where table_schema = current_schema() order by 1, 2",
        "select proname, prosrc from pg_proc where pronamespace = current_schema()::regnamespace"
        " order by 1",
        "select component, number, checksum from schema_migrations order by component, number",
    ],
}


def old_sources(folder: Path) -> list[tuple[str, Path]]:
    """Return the migrations of an older version."""
    made = []
    for component, package, upto in (
        ("outbox", Path(outbox.__path__[0]) / "database", OLD_OUTBOX),
        ("gateway", Path(gateway.__path__[0]), OLD_GATEWAY),
    ):
        kept = folder / f"old-{component}"
        kept.mkdir()
        for path in sorted((package / "migrations").glob("0*")):
            if int(path.name[:4]) <= upto:
                shutil.copy(path, kept)
        made.append((component, kept))
    return made


async def _old(url: str, sources: list[tuple[str, Path]]) -> None:
    db = await database.open(url, clock=SystemClock(), ids=Ids())
    try:
        await migrate(db, sources)
        await db.write(_some_rows)
    finally:
        await db.close()


async def _some_rows(tx: Tx) -> None:
    await tx.run(
        "insert into idempotency (owner_id, key, method, path, fingerprint, status, headers, body,"
        " created_at) values ('o', 'k', 'POST', '/api/deals', $1, 201, '{}', $2, 1)",
        b"f", b'{"id":"1"}',
    )  # fmt: skip
    await tx.run(
        "insert into contacts (id, owner_id, version, created_at, name, email, tags, source,"
        " folded, sort_name)"
        " values ('c', 'o', 1, 1, 'Ana', ' Ana@Example.com', '[]', 'api', '', '')"
    )


async def _query(url: str, sql: str) -> list[tuple[object, ...]]:
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as db:
            return db.execute(sql).fetchall()
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(sql)]
    finally:
        await connection.close()


@pytest.fixture
async def old(tmp_path: Path) -> str:
    """The address of a database of an older version."""
    url = f"sqlite:///{tmp_path / 'old.db'}"
    await _old(url, old_sources(tmp_path))
    return url


def test_a_backup_of_an_older_version_is_migrated(
    old: str, target: str, db_url: str, tmp_path: Path
) -> None:
    made = command("backup", "b", folder=tmp_path, CARTEIRO_DATABASE__URL=old)
    assert made.returncode == 0, made.stderr
    done = command("restore", "b", folder=tmp_path, CARTEIRO_DATABASE__URL=target)
    assert done.returncode == 0, done.stderr
    [kept] = asyncio.run(_query(target, "select operation, outcome from idempotency"))
    assert kept[0] == "POST /api/deals"
    assert asyncio.run(_query(target, "select email_folded from contacts")) == [
        ("ana@example.com",)
    ]
    if target.partition(":")[0] == db_url.partition(":")[0]:
        for sql in SCHEMA["sqlite" if target.startswith("sqlite") else "postgres"]:
            assert asyncio.run(_query(target, sql)) == asyncio.run(_query(db_url, sql))
