"""The MCP door on SQLite: the operations below have tests on each engine."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.server.config import Config, Egress
from outbox.database.transaction import Database
from tests.support.databases import SqliteFiles, open_fresh
from tests.support.rest import UNLIMITED, Person, RestApi
from tests.support.site import Still, serving

CONFIG = Config(limits=UNLIMITED.limits, egress=Egress(allow_http=True, allow=("127.0.0.0/8",)))


@pytest.fixture
async def file(tmp_path: Path, sqlite_files: SqliteFiles) -> AsyncIterator[Database]:
    """An open database."""
    url = await sqlite_files.fresh(tmp_path)
    db = await open_fresh(url, Still())
    yield db
    await db.close()


@pytest.fixture
async def api(file: Database) -> AsyncIterator[RestApi]:
    """The door without rate limits."""
    async with serving(file, CONFIG) as site:
        yield RestApi(site)


@pytest.fixture
async def ana(api: RestApi) -> Person:
    return await api.person()
