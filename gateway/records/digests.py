"""Computes digests of an owner's records, so that a receiver can compare its copy of them.

A range of ids is cut into parts of equally many records. A part has a count and the SHA-256 of its
lines `id:version`, in the order of ids. An id begins with the milliseconds of its record's creation
(outbox.ids), so the index of the owner's newest records serves a range of ids too.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from gateway.records import settled_rows, store
from gateway.records.audit import Actor
from gateway.records.resource import Resource
from outbox.database.index_plans import by_index
from outbox.database.transaction import Tx
from outbox.ids import ID_LENGTH

MOST = 1_000_000
"""Records that one digest reads; of a longer range it tells the place from which to go on.

It reads more only where more than these were created in one millisecond.
"""
PARTS = 1_024
"""The most parts of one digest."""
USUAL_PARTS = 16
PAGE = 10_000
"""Records of one statement."""
FIRST = "0" * ID_LENGTH
AFTER_ALL = "g"
NO_END = 2**62
_MILLISECOND = 1_000
_DIGITS = 12
"""Digits of an id that are the milliseconds."""


@dataclass(frozen=True, slots=True)
class Part:
    """The records with ids from `start` to before `end`; without `end`, all later ones.

    `first` and `last` are the ids of its first and last record, None when it has none.
    """

    start: str
    end: str | None
    count: int
    digest: str
    first: str | None = None
    last: str | None = None


@dataclass(frozen=True, slots=True)
class Digest:
    """The parts of a range without holes; `onward` is where the next digest starts, if any."""

    parts: Sequence[Part]
    onward: str | None


async def digest(
    tx: Tx, actor: Actor, resource: Resource, start: str, end: str | None, parts: int
) -> Digest:
    """Return the digest of the actor's records of this range, of one moment. Raises forbidden."""
    actor.must("read")
    await by_index(tx)
    since, until = _times(start, end)
    ids = start, end or AFTER_ALL
    if start == FIRST and end is None:
        total = await store.total(tx, actor.owner_id, resource)
    else:
        row = await tx.one(_count(resource), actor.owner_id, since, until, *ids, MOST + 1)
        total = int(row["n"]) if row else 0
    cutter = _Cutter(start, max(1, -(-min(total, MOST) // parts)))
    held: list[str] = []
    place, read, ended = (since, ""), 0, False
    while not ended:
        # One more than the budget tells that there is more.
        wanted = min(PAGE, MOST + 1 - read) if read <= MOST else PAGE
        row = await tx.one(_page(resource), actor.owner_id, *place, until, *ids, wanted)
        lines = row["lines"].split() if row and row["lines"] else []
        held += lines
        read += len(lines)
        ended = len(lines) < wanted
        if row and lines:
            place = int(row["reached_at"]), _id_of(lines[-1])
        if ended or _time_of(held[0]) != _time_of(held[-1]):
            # Within a millisecond, the order of the index may differ from that of the ids, so
            # its lines are known when all of them are read: a cut is between two milliseconds.
            held.sort()
            known = len(held) if ended else _before_last_millisecond(held)
            cutter.add(held[:known])
            held = held[known:]
        if not ended and read > MOST and cutter.has_lines:
            onward = _first_of(_time_of(held[0]))
            return Digest(cutter.finish(onward), onward)
    return Digest(cutter.finish(end), None)


class _Cutter:
    """Cuts lines into parts of `size` lines."""

    def __init__(self, start: str, size: int) -> None:
        self._start = start
        self._size = size
        self._lines: list[str] = []
        self._parts: list[Part] = []

    def add(self, lines: Sequence[str]) -> None:
        self._lines += lines
        place = 0
        # The line behind a part tells where the part ends.
        while len(self._lines) - place > self._size:
            upto = place + self._size
            self._close(self._lines[place:upto], _id_of(self._lines[upto]))
            place = upto
        del self._lines[:place]

    @property
    def has_lines(self) -> bool:
        """Whether a line was added."""
        return bool(self._lines)

    def finish(self, end: str | None) -> Sequence[Part]:
        """Return all parts; the last one ends at `end`."""
        if self._lines or not self._parts:
            self._close(self._lines, end)
        return self._parts

    def _close(self, lines: Sequence[str], end: str | None) -> None:
        text = "\n".join([*lines, ""])
        ids = (_id_of(lines[0]), _id_of(lines[-1])) if lines else (None, None)
        self._parts.append(
            Part(self._start, end, len(lines), hashlib.sha256(text.encode()).hexdigest(), *ids)
        )
        self._start = end or self._start


def _id_of(line: str) -> str:
    return line[:ID_LENGTH]


def _time_of(line: str) -> str:
    return line[:_DIGITS]


def _first_of(milliseconds: str) -> str:
    """Return the least id of a millisecond."""
    return milliseconds.ljust(ID_LENGTH, "0")


def _before_last_millisecond(lines: Sequence[str]) -> int:
    """Return how many of these sorted lines precede those of the last millisecond."""
    return bisect_left(lines, _time_of(lines[-1]))


def _times(start: str, end: str | None) -> tuple[int, int]:
    """Return the times of creation of the first and last record that can have such an id."""
    until = NO_END if end is None else int(_time_of(end), 16) * _MILLISECOND + _MILLISECOND - 1
    return int(_time_of(start), 16) * _MILLISECOND, until


@lru_cache(maxsize=64)
def _count(resource: Resource) -> str:
    return (
        f"select count(*) as n from (select 1 from {resource.table} where owner_id = $1"
        f" and created_at >= $2 and created_at <= $3 and id >= $4 and id < $5"
        f"{settled_rows.seen(resource)} limit $6) as those"
    )


@lru_cache(maxsize=64)
def _page(resource: Resource) -> str:
    """Return the query for the lines of a page behind a place, in one text.

    SQLite's driver releases the interpreter lock at every row, see gateway.records.statements.
    """
    version = settled_rows.expressions(resource)["version"]
    return (
        "select /*sqlite group_concat*/ /*postgres string_agg*/"
        "(id || ':' || version, ' ') as lines, max(created_at) as reached_at"
        f" from (select id, {version}, created_at from {resource.table} where owner_id = $1"
        " and (created_at, id) > ($2, $3) and created_at <= $4 and id >= $5 and id < $6"
        f"{settled_rows.seen(resource)} order by created_at, id limit $7) as page"
    )
