"""Write the rows of `Tx.later` with as few statements as possible, mostly one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from outbox.database import sql
from outbox.database.deferred import Deferred
from outbox.database.transaction import Insert

ROWS = 16
"""Most rows of one statement for several INSERTs; more make too many different statements."""

Witness = tuple[Insert, str]
"""An INSERT with `found`, and the first value of one of its rows."""


class Statements(NamedTuple):
    """Statements that write rows, each with its values."""

    texts: Sequence[tuple[str, list[Any]]]
    witness: Witness | None


def together(rows: Deferred) -> Statements:
    """Return the statements that write `rows`, which are no longer kept there."""
    parts: list[tuple[Insert, int]] = []
    values: list[list[Any]] = []
    witness: Witness | None = None
    kept = list(rows.let_out())
    # One INSERT stays one: PostgreSQL runs the parts of a statement in an order of its own, and the
    # events of a transaction take their places in the order in which they were written.
    few = sum(len(each) for _, each in kept) <= ROWS
    for insert, each in kept:
        if insert.found:
            witness = (insert, each[0][0])
        done = 0
        for size in (len(each),) if few else sql.sizes(len(each)):
            parts.append((insert, size))
            values.append([value for row in each[done : done + size] for value in row])
            done += size
    if few:
        all_rows = (_text(tuple(parts)), [value for some in values for value in some])
        return Statements([all_rows], witness)
    each_alone = [(_text((part,)), some) for part, some in zip(parts, values, strict=True)]
    return Statements(each_alone, witness)


@lru_cache(maxsize=1024)
def _text(parts: Sequence[tuple[Insert, int]]) -> str:
    """Return one statement: data-modifying CTEs, then the last INSERT."""
    texts: list[str] = []
    first = 1
    for insert, size in parts:
        texts.append(sql.insert_text(insert.table, insert.columns, size, insert.conflict, first))
        first += size * len(insert.columns)
    *before, last = texts
    before = [f"part_{number} as ({text})" for number, text in enumerate(before)]
    return f"with {', '.join(before)} {last}" if before else last
