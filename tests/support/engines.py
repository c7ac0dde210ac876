"""A fresh, empty database on either engine, for a product that runs as a process."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import asyncpg

from tests.support.databases import PostgresServer
from tests.support.ledger import Held, held

Engine = Literal["sqlite", "postgres"]

SERVER = PostgresServer()
"""Started on first use; ends with the process."""


@asynccontextmanager
async def empty_database(engine: Engine, folder: Path) -> AsyncIterator[str]:
    """Return its address; on SQLite a file in `folder` that does not exist yet."""
    if engine == "sqlite":
        yield f"sqlite:///{folder / 'carteiro.db'}"
        return
    url = await SERVER.empty()
    yield url
    await SERVER.drop(url)


async def state_after_kill(url: str) -> tuple[Held, str]:
    """Return deliveries in flight at the death, and `ok` or the damage of the file.

    On SQLite this reads a copy, so that the product itself recovers the file.
    """
    if url.startswith("sqlite"):
        with tempfile.TemporaryDirectory() as aside:
            file = Path(url.removeprefix("sqlite:///"))
            for suffix in ("", "-wal"):
                if Path(f"{file}{suffix}").exists():
                    shutil.copyfile(f"{file}{suffix}", f"{aside}/copy.db{suffix}")
            connection = sqlite3.connect(f"{aside}/copy.db")
            try:
                [(verdict,)] = connection.execute("pragma integrity_check(1)").fetchall()
                connection.execute("pragma foreign_key_check").fetchall()
            finally:
                connection.close()
            return await held(f"sqlite:///{aside}/copy.db"), str(verdict)
    connection = await asyncpg.connect(url)
    try:
        # A COMMIT under way when the client died may still run.
        while await connection.fetchval(
            "select count(*) from pg_stat_activity"
            " where application_name = 'carteiro' and datname = current_database()"
        ):
            await connection.execute("select pg_sleep(0.02)")
    finally:
        await connection.close()
    return await held(url), "ok"
