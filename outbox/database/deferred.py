"""Rows that `Tx.later` puts off, until the driver writes them together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from outbox.database import sql
from outbox.database.transaction import Insert


class Deferred:
    """Rows by their INSERT, in the order in which each INSERT came first, those that refer last."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: dict[Insert, list[Sequence[Any]]] = {}

    @classmethod
    def of(cls, several: Iterable[Deferred]) -> Deferred:
        """Return the rows of several, which keep them."""
        together = cls()
        for each in several:
            for insert, rows in each.rows.items():
                together.rows.setdefault(insert, []).extend(rows)
        return together

    def __bool__(self) -> bool:
        return bool(self.rows)

    def add(self, insert: Insert, row: Sequence[Any]) -> None:
        """Keep one row."""
        rows = self.rows.get(insert)
        if rows is None:
            self.rows[insert] = [row]
        else:
            rows.append(row)

    def take(self, other: Deferred) -> None:
        """Take the rows of `other`, which nobody uses any more."""
        own = self.rows
        if not own:
            self.rows = other.rows
            return
        for insert, rows in other.rows.items():
            if insert in own:
                own[insert] += rows
            else:
                own[insert] = rows

    def concern(self, statement: str) -> bool:
        """Return whether `statement` must find the rows written.

        It names the tables that it reads, and a write may refer to others by a foreign key.
        """
        words = sql.words(statement)
        writes = not statement.startswith("select")
        for insert in self.rows:  # noqa: SIM110 - a generator costs more than its answer
            if (writes and insert.referred) or insert.table in words:
                return True
        return False

    def length(self) -> int:
        """Return the length of all texts and bytes."""
        length = 0
        for rows in self.rows.values():
            for row in rows:
                for value in row:
                    kind = type(value)
                    if kind is str or kind is bytes:
                        length += len(value)
        return length

    def drain(self) -> Iterator[tuple[Insert, list[Sequence[Any]]]]:
        """Yield the rows of each INSERT, sums added up; nothing is kept."""
        rows, self.rows = self.rows, {}
        for last in (False, True):
            for insert, each in rows.items():
                if insert.refers is last:
                    yield insert, _added_up(each) if insert.sums and len(each) > 1 else each


def _added_up(rows: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    """Add up the last values; in the order of keys, so that two writers cannot deadlock."""
    sums: dict[tuple[Any, ...], Any] = {}
    for *key, last in rows:
        sums[tuple(key)] = sums.get(tuple(key), 0) + last
    return [(*key, total) for key, total in sorted(sums.items())]
