"""A PostgreSQL database, and handles on it as from several processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database import postgres
from outbox.database.postgres import limits
from outbox.database.postgres.limits import Limits
from outbox.database.transaction import Database
from outbox.ids import Ids
from tests.support.databases import ORDINARY, PostgresServer

Open = Callable[..., Awaitable[Database]]


@pytest.fixture
async def url(postgres_server: PostgresServer) -> AsyncIterator[str]:
    """A migrated, empty database of an ordinary role."""
    url = await postgres_server.fresh(ORDINARY)
    yield url
    await postgres_server.drop(url)


@pytest.fixture
async def handle() -> AsyncIterator[Open]:
    """Return `await handle(url, …)`: a handle that closes at the end."""
    handles: list[Database] = []

    async def handle(url: str, **options: Any) -> Database:
        handles.append(await database.open(url, clock=SystemClock(), ids=Ids(), **options))
        return handles[-1]

    yield handle
    for db in handles:
        await db.close()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """All limits that end a unit come soon: a test that waits for one of them waits for no more."""
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.4)
    monkeypatch.setattr(limits, "COMMIT_SECONDS", 0.5)
    monkeypatch.setattr(limits, "FATE_SECONDS", 0.6)
    monkeypatch.setattr(
        postgres, "REQUESTS", Limits(lock=0.2, statement=0.3, idle=0.2, transaction=0.5)
    )
