"""An SQLite database with a table of notes, on a clock that stands still."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from outbox import database
from outbox.database.transaction import Database, Tx
from outbox.ids import Ids
from tests.support.clocks import Stopped


@pytest.fixture
def clock() -> Stopped:
    return Stopped()


@pytest.fixture
async def file(tmp_path: Path, clock: Stopped) -> AsyncIterator[Database]:
    db = await database.open(f"sqlite:///{tmp_path}/one.db", clock=clock, ids=Ids(), serving=True)

    async def table(tx: Tx) -> None:
        await tx.run(
            "create table notes (n integer primary key, name text unique, text blob not null)"
        )

    await db.write(table)
    yield db
    await db.close()
