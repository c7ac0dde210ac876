"""Fixtures that every part of the tests shares."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.ids import Ids
from tests.support.databases import PostgresServer, SqliteFiles

pytest_plugins = ["tests.support.require_all"]


def pytest_configure() -> None:
    """Settings of whoever runs the tests stay outside."""
    for name in [name for name in os.environ if name.startswith("CARTEIRO_")]:
        del os.environ[name]


@pytest.fixture(scope="session")
def sqlite_files() -> SqliteFiles:
    return SqliteFiles()


@pytest.fixture(scope="session")
def postgres_server() -> PostgresServer:
    return PostgresServer()


@pytest.fixture(params=["sqlite", "postgres"])
async def db_url(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    sqlite_files: SqliteFiles,
    postgres_server: PostgresServer,
) -> AsyncIterator[str]:
    """The address of a migrated, empty database; each test runs once per engine."""
    if request.param == "sqlite":
        yield await sqlite_files.fresh(tmp_path)
        return
    url = await postgres_server.fresh()
    yield url
    await postgres_server.drop(url)


@pytest.fixture
async def db(db_url: str) -> AsyncIterator[Database]:
    """An open database on each engine."""
    db = await database.open(db_url, clock=SystemClock(), ids=Ids(), serving=True)
    yield db
    await db.close()
