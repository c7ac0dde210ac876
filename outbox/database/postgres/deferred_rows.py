"""Write the rows of `Tx.later` with one statement."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from outbox.database.deferred import Deferred
from outbox.database.postgres.hosts import Connection
from outbox.database.sql import insert_text
from outbox.database.transaction import Insert

Witness = tuple[Insert, str]
"""An INSERT with `found`, and the first value of one of its rows."""
Types = tuple[str, ...]
FEW = 2
"""Rows of an INSERT: the usual numbers of a create and of the result of an attempt."""

_types: dict[Insert, Types] = {}
"""The types of the columns; a program has one schema, on whatever server."""


class Statement(NamedTuple):
    """A statement that writes rows."""

    text: str
    values: Sequence[Any]
    witness: Witness | None


async def together(connection: Connection, rows: Deferred) -> Statement:
    """Return the statement that writes `rows`, which are no longer kept there.

    Each value is an array, a column of rows, and the INSERTs are in an order of their own, so that
    any number of rows in any order has the same text: the server prepares few statements. One or
    two rows of each INSERT have texts without arrays: the driver takes long to encode one.
    """
    parts = sorted(rows.drain(), key=_place)
    values: list[Any] = []
    witness: Witness | None = None
    few = True
    for insert, each in parts:
        few = few and len(each) <= FEW
        if insert.found:
            witness = (insert, each[0][0])
    if few:
        for _, each in parts:
            for row in each:
                values += row
        text = _text_of_few(tuple([(insert, len(each)) for insert, each in parts]))
        return Statement(text, values, witness)
    inserts: list[tuple[Insert, Types]] = []
    for insert, each in parts:
        inserts.append((insert, _types.get(insert) or await _types_of(connection, insert)))
        values += zip(*each, strict=True)
    return Statement(_text(tuple(inserts)), values, witness)


def _place(part: tuple[Insert, object]) -> tuple[str, tuple[str, ...], str]:
    insert, _ = part
    return insert.table, insert.columns, insert.conflict


async def _types_of(connection: Connection, insert: Insert) -> Types:
    """Ask the server for the types of the columns of `insert`."""
    prepared = await connection.prepare(insert_text(insert.table, insert.columns, 1, ""))
    _types[insert] = tuple(each.name for each in prepared.get_parameters())
    return _types[insert]


@lru_cache(maxsize=1024)
def _text(inserts: Sequence[tuple[Insert, Types]]) -> str:
    """Return one statement: data-modifying CTEs, then the last INSERT.

    PostgreSQL runs the parts in an order of its own. So one INSERT stays one, as the events of a
    transaction take their places in the order in which they were written.
    """
    texts: list[str] = []
    number = 0
    for insert, types in inserts:
        arrays = [f"cast(${number + n} as {name}[])" for n, name in enumerate(types, 1)]
        number += len(types)
        texts.append(
            f"insert into {insert.table} ({', '.join(insert.columns)})"
            f" select * from unnest({', '.join(arrays)}) {insert.conflict}"
        )
    return _joined(texts)


@lru_cache(maxsize=1024)
def _text_of_few(inserts: Sequence[tuple[Insert, int]]) -> str:
    """Return the same for a few rows of each INSERT."""
    texts: list[str] = []
    first = 1
    for insert, size in inserts:
        texts.append(insert_text(insert.table, insert.columns, size, insert.conflict, first))
        first += len(insert.columns) * size
    return _joined(texts)


def _joined(texts: Sequence[str]) -> str:
    *before, last = texts
    before = [f"part_{number} as ({text})" for number, text in enumerate(before)]
    return f"with {', '.join(before)} {last}" if before else last
