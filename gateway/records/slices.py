"""Reads a slice of a list by position, forwards or backwards, without counting the list."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.records import statements, store
from gateway.records.places import Place
from gateway.records.query import MOST, Query, conditions
from gateway.records.record import CREATED_AT, ID, Record, records_of
from gateway.records.resource import Resource
from outbox.database.transaction import Tx


@dataclass(frozen=True, slots=True)
class SliceRequest:
    """The part of a list between two positions: its first `limit` records, or its last ones."""

    limit: int
    last: bool = False
    after: Place | None = None
    before: Place | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """The records of a slice in the list's order, each with its position.

    `more`: there are records past the limit. `long`: ids whose long texts are unread. `end`: where
    to go on, when that is not the position of the last record.
    """

    records: Sequence[Record]
    places: Sequence[Place]
    more: bool
    long: frozenset[str] = frozenset()
    end: Place | None = None


NOTHING = Slice([], [], False)


def bounds(
    request: SliceRequest, key: str, descending: bool, args: list[Any], record_id: str = "id"
) -> str:
    """Return the conditions of a slice, each with a leading ` and `; append their values."""
    condition = ""
    for place, later in ((request.after, True), (request.before, False)):
        if place is not None:
            args += (place.at, place.record_id)
            sign = "<" if later == descending else ">"
            condition += f" and ({key}, {record_id}) {sign} (${len(args) - 1}, ${len(args)})"
    return condition


def order(request: SliceRequest, key: str, descending: bool, record_id: str = "id") -> str:
    """Return the order in which to read a slice: from its end when `last`."""
    way = " desc" * (descending != request.last)
    return f"{key}{way}, {record_id}{way}"


def slice_of(
    records: Sequence[Record],
    request: SliceRequest,
    place: Callable[[Record], Place],
    long: frozenset[str] = frozenset(),
) -> Slice:
    """Return the slice of up to `limit` + 1 records in the order of `order`."""
    more = len(records) > request.limit
    records = records[: request.limit]
    if request.last:
        records = records[::-1]
    return Slice(records, [place(record) for record in records], more, long)


async def read_slice(
    tx: Tx, resource: Resource, owner_id: str, query: Query, request: SliceRequest, zone: str
) -> Slice:
    """Return a slice of the list, the newest first, with whole records.

    `query` narrows the list. Its limit, order and positions do not count.
    """
    assert request.limit <= MOST, "too many at once"
    where, values = conditions(resource, query, tx.now, zone)
    args = [owner_id, *values]
    where += bounds(request, "created_at", True, args)
    args += (request.limit + 1, 0)
    sql = statements.page(
        resource, where, order(request, "created_at", True),
        size=len(args) - 1, offset=len(args), late=False,
    )  # fmt: skip
    rows, long = await store.fetch_all(tx, sql, *args)
    if long:
        whole = await store.fetch_whole(tx, resource, [*long])
        rows = [whole.get(row[ID], row) for row in rows]
    return slice_of(
        records_of(resource, rows, tx.now, zone),
        request,
        lambda record: Place(record.row[CREATED_AT], record.id),
    )


async def count(tx: Tx, resource: Resource, owner_id: str, query: Query, zone: str) -> int:
    """Return the number of records in the list."""
    where, args = conditions(resource, query, tx.now, zone)
    row = await tx.one(statements.count(resource, where), owner_id, *args)
    return int(row[0]) if row else 0
