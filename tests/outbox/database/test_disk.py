"""What the databases of a PostgreSQL server take of its disk, for roles with and without rights."""

from __future__ import annotations

import pytest

from outbox.database.disk import measure
from outbox.database.transaction import Database

POSTGRES = pytest.mark.parametrize("db_url", ["postgres"], indirect=True)


@POSTGRES
async def test_the_sizes_of_databases_and_log(db: Database) -> None:
    sizes = await db.read(measure)
    assert 1_000_000 < sizes.database < sizes.databases
    assert sizes.wal is not None
    assert sizes.wal >= 2**20
