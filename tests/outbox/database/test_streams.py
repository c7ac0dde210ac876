"""Streams: rows of one moment for a slow reader, one of each owner at a time, and an end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from outbox.database.postgres import streams as postgres
from outbox.database.sqlite import streams as sqlite
from outbox.database.transaction import Database, Tx
from outbox.errors import DatabaseUnavailable

ROWS = "select name, began_at from duties order by name"
MANY = 5_000


async def _fill(tx: Tx, first: int, count: int) -> None:
    for number in range(first, first + count):
        await tx.run(
            "insert into duties (name, began_at) values ($1, $2)", f"{number:06}" + "x" * 200,
            number,
        )  # fmt: skip


async def test_a_stream_has_the_rows_of_one_moment(db: Database) -> None:
    await db.write(_fill, 0, MANY)
    stream = db.stream("a", ROWS)
    first = await anext(stream)
    assert 0 < len(first) < MANY
    await db.write(_fill, MANY, 10)
    rest: list[Sequence[Any]] = [*first]
    async for batch in stream:
        rest += batch
    assert [row[1] for row in rest] == list(range(MANY))
    assert [batch async for batch in db.stream("a", f"{ROWS} limit $1", 0)] == []


async def test_a_stream_ends_after_its_time(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await db.write(_fill, 0, MANY)
    monkeypatch.setattr(sqlite if db.engine == "sqlite" else postgres, "STREAM_SECONDS", -1.0)
    with pytest.raises(DatabaseUnavailable, match="took too long"):
        await anext(db.stream("a", ROWS))
    monkeypatch.undo()
    # Its place is free again.
    stream = db.stream("a", ROWS)
    assert len(await anext(stream)) > 0
    await stream.aclose()


async def test_a_closing_database_ends_its_streams(db: Database) -> None:
    await db.write(_fill, 0, MANY)
    stream = db.stream("a", ROWS)
    await anext(stream)
    await db.close()
    await stream.aclose()
