"""An empty database of either engine for a benchmark, as durable as in an installation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg

from tests.benchmarks.staging import Stage
from tests.support.databases import PostgresServer

SERVER = PostgresServer()


@asynccontextmanager
async def fresh(engine: str, folder: Path) -> AsyncIterator[Stage]:
    """Create a database that exists only during the block."""
    if engine == "sqlite":
        yield Stage(f"sqlite:///{folder / 'carteiro.db'}", folder)
        return
    connection = await asyncpg.connect(await SERVER.url())
    try:
        # Tests that measure nothing run without it.
        await connection.execute("alter system set fsync = on")
        await connection.execute("select pg_reload_conf()")
    finally:
        await connection.close()
    url = await SERVER.empty()
    try:
        yield Stage(url, folder)
    finally:
        await SERVER.drop(url)
