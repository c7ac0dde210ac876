"""What the databases of a PostgreSQL server take of its disk, for roles with and without rights."""

from __future__ import annotations

import pytest

from outbox.database.disk import Sizes, measure
from outbox.database.transaction import Database, Tx

POSTGRES = pytest.mark.parametrize("db_url", ["postgres"], indirect=True)


@POSTGRES
async def test_the_sizes_of_databases_and_log(db: Database) -> None:
    sizes = await db.read(measure)
    assert 1_000_000 < sizes.database < sizes.databases
    assert sizes.wal is not None
    assert sizes.wal >= 2**20


class Over(Exception):
    """Ends a transaction, so that its role is gone."""


@POSTGRES
async def test_an_ordinary_role_learns_all_but_the_log(db: Database) -> None:
    found: list[Sizes] = []

    async def as_ordinary_role(tx: Tx) -> None:
        await tx.run("create role ordinary_measurer")
        await tx.run("set local role ordinary_measurer")
        found.append(await measure(tx))
        raise Over

    with pytest.raises(Over):
        await db.write(as_ordinary_role)
    assert found[0].wal is None
    assert found[0].databases > found[0].database > 1_000_000
