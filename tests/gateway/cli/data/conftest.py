"""Databases that a backup comes from and goes to."""

from collections.abc import AsyncIterator

import pytest

from tests.support.databases import PostgresServer


@pytest.fixture
async def empty_postgres(postgres_server: PostgresServer) -> AsyncIterator[str]:
    """The address of an empty PostgreSQL database."""
    url = await postgres_server.empty()
    yield url
    await postgres_server.drop(url)
