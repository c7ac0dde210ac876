"""Tells whether the first page of a list has changed, without reading its records whole.

A record's version grows with every change; a derived field may change with the time alone.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from msgspec import json

from gateway.records import statements
from gateway.records.query import NEWEST, Page, Query, costly
from gateway.records.record import ID, UPDATED_AT, VERSION, Record
from gateway.records.resource import Resource
from gateway.records.values import dates
from outbox.database.transaction import Tx

Edition = Sequence[Any]
"""The total, whether there is a next page, and the state of each record. Equal while none changes.

A state is id, version, time of the last change, and the derived values that are not constant.
"""


def has(resource: Resource, query: Query) -> bool:
    """Return whether the list request asks for the first page of a whole list."""
    begins = query.page == 1 and query.after is None and query.ids is None and not query.nothing
    return begins and not query.search and costly(resource, query) is None


async def current(tx: Tx, resource: Resource, owner_id: str, limit: int, zone: str) -> Edition:
    """Return the edition of the first page as it is now."""
    sql = statements.edition(resource, NEWEST)
    row = await tx.one(sql, owner_id, resource.table, limit + 1)
    assert row is not None
    states = json.decode(row["records"] or "[]")
    varying = _varying(resource)
    if varying:
        at = dates.Moment(tx.now, zone)
        for state in states:
            state[3:] = [of(at, *columns_of(state)) for of, columns_of in varying]
    return [row["n"], len(states) > limit, *states[:limit]]


def of(resource: Resource, page: Page) -> Edition:
    """Return the edition of a first page that was read whole."""
    return [page.total, page.onward is not None, *map(_state, page.records)]


def _state(record: Record) -> list[Any]:
    row, resource = record.row, record.resource
    state = [row[ID], row[VERSION], row[UPDATED_AT]]
    if record.derived:
        pairs = zip(resource.derived, record.derived, strict=True)
        state += [value for wanted, value in pairs if not wanted.constant]
    return state


@lru_cache(maxsize=64)
def _varying(
    resource: Resource,
) -> Sequence[tuple[Callable[..., Any], Callable[[Sequence[Any]], Sequence[Any]]]]:
    """Return (of, a function from values of `edition_columns` to its arguments) by field."""
    columns = statements.edition_columns(resource)
    return [
        (d.of, _taking([columns.index(column) for column in d.columns]))
        for d in resource.derived
        if not d.constant
    ]


def _taking(places: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return a function from a list to its values at `places`."""
    if len(places) == 1:
        [place] = places
        return lambda values: (values[place],)
    return itemgetter(*places)
