"""Translate SQL written once for two engines, and insert many rows with one statement.

On SQLite each statement releases the interpreter lock and must win it back from a busy event loop,
so a batch of 200 rows is one statement.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from outbox.database.transaction import Engine, Tx

_OWN = {
    "sqlite": re.compile(r"/\*sqlite\s(.*?)\*/", re.S),
    "postgres": re.compile(r"/\*postgres\s(.*?)\*/", re.S),
}
_NAMES = {
    "own_lock": r"(case when {unnamed} then \1 else hashtextextended({schema}, \1) end)",
    # Of migrations, which make that view: the schema alone names it.
    "schema_lock": r"(case current_schema() when 'public' then \1"
    r" else hashtextextended({schema}, \1) end)",
    "own_channel": "('carteiro_outbox' || case when {unnamed} then '' else"
    " '_' || to_hex(hashtextextended({schema}, 0)) end)",
}
_OWN_NAMES = [
    (
        re.compile(rf"\b{name}\((\d*)\)"),
        text.format(
            unnamed="to_regclass(quote_ident(current_schema()) || '.own_locks') is null",
            schema="cast(current_schema() as text)",
        ),
    )
    for name, text in _NAMES.items()
]
"""On PostgreSQL: the number of an advisory lock, and the channel of signals.

They are global to a database, and it may have an installation in each of several schemas. A schema
with the view `own_locks` has its own; `public`, and any schema while nodes of a release without
this view may use it, have the numbers as they stand in the statements.
"""
_COMMENT = re.compile(r"/\*.*?\*/|--[^\n]*", re.S)
_WORD = re.compile(r"[a-z_]+")
_DOLLAR = re.compile(r"\$(\d+)")
# The items of a JSON array in $1, one row each in `value`; read fields as `value ->> n`.
ITEMS = (
    "/*sqlite json_each($1) as items*/"
    " /*postgres json_array_elements(cast($1 as json)) as items(value)*/"
)
# The strings of a JSON array in $1, for `in`.
IDS = (
    "(select value from /*sqlite json_each($1)*/"
    " /*postgres json_array_elements_text(cast($1 as json)) as ids(value)*/)"
)
# The condition that a column equals one of the strings of a JSON array in $1. An array on
# PostgreSQL, which may otherwise walk the ids for each row of the table.
AMONG_IDS = (
    "/*sqlite in (select value from json_each($1))*/"
    " /*postgres = any (array(select json_array_elements_text(cast($1 as json))))*/"
)
# Few sizes, so that few statements are prepared; each power of two, so that few statements make any
# number of rows. The largest stays under 32,766 parameters.
SIZES = (128, 64, 32, 16, 8, 4, 2, 1)

_encoder = msgspec.json.Encoder()


@lru_cache(maxsize=4096)
def translate(sql: str, engine: Engine) -> str:
    """Return `sql` for `engine`: open its markers, drop comments, and write `$1` as `?1` on SQLite.

    Nothing is interpolated into the text; values are parameters. `own_lock(N)` and `own_channel()`
    become what they are in the schema of the installation.
    """
    sql = _COMMENT.sub("", _OWN[engine].sub(r"\1", sql)).strip()
    if engine == "postgres" and ("own_" in sql or "schema_lock" in sql):
        for pattern, text in _OWN_NAMES:
            sql = pattern.sub(text, sql)
    # From Python 3.14 on, sqlite3 rejects a bare $1 with a sequence of values.
    return _DOLLAR.sub(r"?\1", sql) if engine == "sqlite" else sql


def items(rows: Sequence[Any]) -> str:
    """Return the parameter for ITEMS or IDS."""
    return _encoder.encode(rows).decode()


async def insert(
    tx: Tx,
    table: str,
    columns: tuple[str, ...],
    rows: Sequence[Sequence[Any]],
    conflict: str = "",
) -> int:
    """Insert `rows`; return how many. `conflict` is an `on conflict` clause or empty."""
    count = 0
    for text, values in inserts(table, columns, rows, conflict):
        count += await tx.run(text, *values)
    return count


def inserts(
    table: str, columns: tuple[str, ...], rows: Sequence[Sequence[Any]], conflict: str
) -> Iterator[tuple[str, list[Any]]]:
    """Yield the statements that insert `rows`, each with its values."""
    done = 0
    for size in sizes(len(rows)):
        some = rows[done : done + size]
        done += size
        yield (
            insert_text(table, columns, size, conflict),
            [value for row in some for value in row],
        )


@lru_cache(maxsize=512)
def sizes(count: int) -> tuple[int, ...]:
    """Return the sizes of the statements that insert `count` rows."""
    parts: list[int] = []
    for size in SIZES:
        parts += [size] * (count // size)
        count %= size
    return tuple(parts)


@lru_cache(maxsize=1024)
def insert_text(
    table: str, columns: tuple[str, ...], size: int, conflict: str, first: int = 1
) -> str:
    """Return the INSERT of `size` rows; its parameters begin with the number `first`."""
    width = len(columns)
    places = (
        "(" + ", ".join(f"${first + row * width + column}" for column in range(width)) + ")"
        for row in range(size)
    )
    return f"insert into {table} ({', '.join(columns)}) values {', '.join(places)} {conflict}"


@lru_cache(maxsize=4096)
def words(sql: str) -> frozenset[str]:
    """Return the words of a statement, the names of its tables among them."""
    return frozenset(_WORD.findall(sql))
