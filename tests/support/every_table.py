"""Every table of a database: rows for all of them, made from the schema alone, and their content.

A table of a later migration is filled and read without a line here; a column with a new kind of
check needs one in FIXED.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

import asyncpg

Rows = dict[str, list[dict[str, Any]]]
"""Rows by table, in a fixed order."""

COUNT = 3
ODD = "ação \\ \t\n'\"%s {}; ☕ {} -- \u202e"
FIXED: Mapping[tuple[str, str], Callable[[int], Any]] = {
    ("outbox_state", "id"): lambda n: 1,
    # Ahead of the clock it would move all due times.
    ("outbox_state", "due_mark"): lambda n: 0,
    # A webhook that is there is not deleted: what waits for it would end.
    ("deleted_webhooks", "id"): lambda n: f"deleted {n}",
    # These two have another meaning on each engine; they have tests of their own.
    ("webhooks", "since_pos"): lambda n: 0,
    ("webhooks", "since_snapshot"): lambda n: None,
}
REBUILT = {
    ("lanes", "due_at"), ("events", "xid"), ("events", "due_at"), ("erasures", "upto_pos"),
}  # fmt: skip
"""Columns that another database computes by itself."""
NOT_MOVED = {"schema_migrations", "nodes"}
STORED = "select name from pragma_table_list where schema = 'main' and type = 'table'"
"""The tables of an SQLite file, without virtual ones and those that store their content."""
_CHECK = re.compile(r"(\w+) [^,]*?check \((\w+) in\s*\(([^)]*)\)\)", re.S)


def rows_for(template: str) -> Rows:
    """Return COUNT rows for each table that moves; `template` is a migrated SQLite file."""
    with sqlite3.connect(template) as db:
        # Columns with a list of values get the first one.
        checks = {
            (table, column): values.split(",")[0].strip().strip("'")
            for table, sql in db.execute("select name, sql from sqlite_master where type = 'table'")
            for _, column, values in _CHECK.findall(sql or "")
        }
        tables = [
            name
            for (name,) in db.execute(STORED)
            if not name.startswith("sqlite_") and name not in NOT_MOVED
        ]
        return {
            table: [
                {row[1]: _value(table, row[1], row[2].lower(), n, checks) for row in columns}
                for n in range(1, 2 if table == "outbox_state" else COUNT + 1)
            ]
            for table in tables
            for columns in [db.execute(f"pragma table_info({table})").fetchall()]
        }


def _value(
    table: str, column: str, kind: str, n: int, checks: Mapping[tuple[str, str], str]
) -> Any:
    if (table, column) in FIXED:
        return FIXED[table, column](n)
    if (table, column) in checks:
        return checks[table, column]
    values: dict[str, Any] = {
        # The same in all tables, so that foreign keys find their rows.
        "text": f"{n}{ODD}",
        "boolean": n % 2 == 0,
        "integer": 2**30 + n,
        "bytea": bytes([0, 255, n]),
        "double precision": n / 3,
    }
    return values.get(kind, 2**62 + n)


async def fill(url: str, rows: Rows) -> None:
    """Replace all content of a migrated database by `rows`."""
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as db:
            for table, content in rows.items():
                db.execute(f"delete from {table}")
                for row in content:
                    places = ", ".join("?" * len(row))
                    sql = f"insert into {table} ({', '.join(row)}) values ({places})"
                    db.execute(sql, list(row.values()))
        return
    connection = await asyncpg.connect(url)
    left = dict(rows)
    while left:
        before = len(left)
        for table, content in list(left.items()):
            try:
                async with connection.transaction():
                    await connection.execute(f"delete from {table}")
                    for row in content:
                        places = ", ".join(f"${n}" for n in range(1, len(row) + 1))
                        await connection.execute(
                            f"insert into {table} ({', '.join(row)})"
                            f" overriding system value values ({places})",
                            *row.values(),
                        )
            except asyncpg.ForeignKeyViolationError:
                continue
            del left[table]
        assert len(left) < before, sorted(left)
    await connection.close()


async def read(url: str) -> Rows:
    """Return the content of every table that is there, whatever it is called."""
    found: Rows = {}
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as db:
            db.row_factory = sqlite3.Row
            for name in [row["name"] for row in db.execute(STORED)]:
                if not name.startswith("sqlite_"):
                    found[name] = [dict(row) for row in db.execute(f"select * from {name}")]
    else:
        connection = await asyncpg.connect(url)
        named = "select tablename from pg_tables where schemaname = current_schema()"
        for (name,) in await connection.fetch(named):
            found[name] = [dict(row) for row in await connection.fetch(f"select * from {name}")]
        await connection.close()
    return {
        table: sorted(
            (
                {name: value for name, value in row.items() if (table, name) not in REBUILT}
                for row in content
            ),
            key=_repr_of,
        )
        for table, content in sorted(found.items())
        if table not in NOT_MOVED
    }


def _repr_of(row: Mapping[str, Any]) -> str:
    """Return a text to sort rows by, the same for 1 and true."""
    return repr([(name, int(v) if isinstance(v, bool) else v) for name, v in sorted(row.items())])
