"""A house with two owners, the first of whom moves into the empty database beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.databases import PostgresServer, SqliteFiles
from tests.support.moved import Pair
from tests.support.movers import furnished, keys_at


@pytest.fixture
def offline(tmp_path: Path, sqlite_files: SqliteFiles) -> Pair:
    """Two SQLite files, which no server uses."""
    house = asyncio.run(furnished(sqlite_files, tmp_path))
    keys_at(keys := tmp_path / "target.key")
    return Pair(house, f"sqlite:///{tmp_path}/target.db", keys)


@pytest.fixture
def pair(tmp_path: Path, postgres_server: PostgresServer) -> Iterator[Pair]:
    """Two databases of PostgreSQL."""
    with asyncio.Runner() as runner:
        house = runner.run(furnished(postgres_server, tmp_path))
        target = runner.run(postgres_server.fresh())
        keys_at(keys := tmp_path / "target.key")
        yield Pair(house, target, keys)
        for url in (house.url, target):
            runner.run(postgres_server.drop(url))
