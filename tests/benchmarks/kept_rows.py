"""Rows of the past: copies of one real event, its delivery and its attempt, made by SQL.

Each copy has ids of its own, and a time within the last twenty days; so indexes and pages are
as a node would have left them, whatever the columns of the tables are.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import asyncpg

DAYS = 20
AT_ONCE = 50_000
TABLES = ("events", "deliveries", "attempts")
FIRST_SEQ = 1_000_000
"""The real events before them have smaller ones."""

# The time of copy n in microseconds, and its id in each table: milliseconds and what looks random.
AT = "(t.now - ({count} - n) * (86400000000 * {days} / {count}))"
ID = {
    "sqlite": "printf('%012x%012x', {at} / 1000, n * {salt} % 281474976710656)",
    "postgres": "lpad(to_hex({at} / 1000), 12, '0') || "
    "lpad(to_hex(n * {salt} % 281474976710656), 12, '0')",
}
SALT = {"event": 2_654_435_761, "record": 2_246_822_519, "delivery": 3_266_489_917}
CHANGED = {
    "events": {"id": "event", "record_id": "record", "seq": "seq", "occurred_at": "at"},
    "deliveries": {
        "id": "delivery", "event_id": "event", "record_id": "record", "seq": "seq",
        "next_at": "at", "created_at": "at", "finished_at": "at",
    },
    "attempts": {"delivery_id": "delivery", "event_id": "event", "started_at": "at"},
}  # fmt: skip
GIVEN = {"pos", "xid"}
"""Columns that the database fills."""
COPIES = """
insert into {table} ({columns})
with recursive number(n) as (select {first} union all select n + 1 from number where n < {last})
select {values} from (select * from {table} limit 1) s,
  (select max(occurred_at) as now from events) t, number
"""
AFTER = "update outbox_state set seq = {seq}"


def fill_file(file: Path, rows: int) -> None:
    """Add `rows` rows to an SQLite file with a delivered event: a third to each table."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        # Nobody has been told of these rows yet.
        connection.execute("pragma synchronous = off")
        connection.execute("pragma cache_size = -500000")

        def columns(table: str) -> list[str]:
            return [row[1] for row in connection.execute(f"pragma table_info({table})")]

        for statement in _statements("sqlite", {table: columns(table) for table in TABLES}, rows):
            connection.execute(statement)
        connection.execute("pragma wal_checkpoint(truncate)")


async def fill_server(url: str, rows: int) -> None:
    """Add `rows` rows to a PostgreSQL database in the same way, with fresh statistics."""
    connection = await asyncpg.connect(url)
    try:
        columns = {
            table: [
                row["column_name"]
                for row in await connection.fetch(
                    "select column_name from information_schema.columns where table_name = $1",
                    table,
                )
            ]
            for table in TABLES
        }
        await connection.execute("set synchronous_commit = off")
        for statement in _statements("postgres", columns, rows):
            await connection.execute(statement)
        await connection.execute("vacuum (analyze)")
        await connection.execute("checkpoint")
    finally:
        await connection.close()


def _statements(engine: str, columns: dict[str, list[str]], rows: int) -> Iterator[str]:
    count = rows // len(TABLES)
    at = AT.format(count=count, days=DAYS)
    made = {word: ID[engine].format(at=at, salt=salt) for word, salt in SALT.items()}
    made |= {"at": at, "seq": f"{FIRST_SEQ} + n"}
    for first in range(1, count + 1, AT_ONCE):
        for table in TABLES:
            named = [name for name in columns[table] if name not in GIVEN]
            values = [
                made[CHANGED[table][name]] if name in CHANGED[table] else f"s.{name}"
                for name in named
            ]
            yield COPIES.format(
                table=table, columns=", ".join(named), values=", ".join(values),
                first=first, last=min(first + AT_ONCE - 1, count),
            )  # fmt: skip
    yield AFTER.format(seq=FIRST_SEQ + count)
