"""A PostgreSQL server of a chosen version that does not wait for a disk."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.cluster import SETTINGS, Cluster
from tests.support.databases import PostgresServer, memory

FASTER = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_wal_size": "256MB",
    "shared_buffers": "128MB",
}


@asynccontextmanager
async def unsynced(version: int) -> AsyncIterator[PostgresServer]:
    """Provide databases on such a server, which exists during the block."""
    with tempfile.TemporaryDirectory(prefix="carteiro-unsynced-", dir=memory()) as name:
        folder = Path(name)
        folder.chmod(0o755)
        cluster = Cluster(folder / "data", {**SETTINGS, **FASTER}, version)
        try:
            await cluster.create()
            await cluster.start()
            yield PostgresServer(cluster.url)
        finally:
            await cluster.close()
