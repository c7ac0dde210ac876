"""Translate SQL written once for two engines, and insert many rows with one statement.

On SQLite each statement releases the interpreter lock and must win it back from a busy event loop,
so a batch of 200 rows is one statement.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from outbox.database.transaction import Engine, Tx

_OWN = {
    "sqlite": re.compile(r"/\*sqlite\s(.*?)\*/", re.S),
    "postgres": re.compile(r"/\*postgres\s(.*?)\*/", re.S),
}
_COMMENT = re.compile(r"/\*.*?\*/|--[^\n]*", re.S)
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
# Few sizes, so that few statements are prepared. The largest stays under 32,766 parameters.
SIZES = (128, 16, 1)

_encoder = msgspec.json.Encoder()


@lru_cache(maxsize=4096)
def translate(sql: str, engine: Engine) -> str:
    """Return `sql` for `engine`: open its markers, drop comments, and write `$1` as `?1` on SQLite.

    Nothing is interpolated into the text; values are parameters.
    """
    sql = _COMMENT.sub("", _OWN[engine].sub(r"\1", sql)).strip()
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
) -> None:
    """Insert `rows`; `conflict` is an `on conflict` clause or empty."""
    done = 0
    for size in SIZES:
        while len(rows) - done >= size:
            values = [value for row in rows[done : done + size] for value in row]
            await tx.run(_insert(table, columns, size, conflict), *values)
            done += size


@lru_cache(maxsize=256)
def _insert(table: str, columns: tuple[str, ...], size: int, conflict: str) -> str:
    width = len(columns)
    places = (
        "(" + ", ".join(f"${row * width + column + 1}" for column in range(width)) + ")"
        for row in range(size)
    )
    return f"insert into {table} ({', '.join(columns)}) values {', '.join(places)} {conflict}"
