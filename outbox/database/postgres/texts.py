"""Make rows of another engine fit PostgreSQL: booleans, and texts without NUL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outbox.database.transfer import Kind, Table, Values
from outbox.errors import CannotStart

NUL = "\0"
STAND_IN = "\N{REPLACEMENT CHARACTER}"
TYPES: dict[Kind, tuple[type, ...]] = {
    "integer": (int,), "number": (int, float), "text": (str,), "boolean": (bool, int),
    "bytes": (bytes,),
}  # fmt: skip


class Fitting:
    """Changes rows of one table; `replaced` counts the texts that lost a NUL."""

    def __init__(self, table: Table) -> None:
        self.replaced = 0
        self._table = table
        kinds = [column.kind for column in table.columns]
        self._booleans = [place for place, kind in enumerate(kinds) if kind == "boolean"]
        self._types = [TYPES[kind] for kind in kinds]

    def fit(self, rows: Sequence[Values]) -> list[tuple[Any, ...]]:
        """Return rows that COPY takes. Raise CannotStart for a value of a wrong type."""
        return [self._row(row) for row in rows]

    def _row(self, row: Values) -> tuple[Any, ...]:
        changed = list(row)
        for place in self._booleans:
            if changed[place] is not None:
                changed[place] = bool(changed[place])
        for place, value in enumerate(changed):
            if value is None:
                continue
            if not isinstance(value, self._types[place]):
                raise CannotStart(self._wrong(place, value))
            if type(value) is str and NUL in value:
                changed[place] = value.replace(NUL, STAND_IN)
                self.replaced += 1
        return tuple(changed)

    def _wrong(self, place: int, value: object) -> str:
        column = self._table.columns[place]
        return (
            f"{self._table.name}.{column.name} has a value of the type {type(value).__name__}, "
            f"which PostgreSQL cannot store as {column.kind}"
        )
