"""Databases that commands write to."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.databases import PostgresServer


@pytest.fixture(params=["sqlite", "postgres"])
async def target(
    request: pytest.FixtureRequest, tmp_path: Path, postgres_server: PostgresServer
) -> AsyncIterator[str]:
    """The address of an empty database without a schema."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'target.db'}"
        return
    url = await postgres_server.empty()
    yield url
    await postgres_server.drop(url)
