"""Reads whether the first page of a list has changed, without reading its records whole.

A record's version grows with every change; a derived field may change with the time alone.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from msgspec import json

from gateway.records import statements
from gateway.records.derived import Derived, varying
from gateway.records.query import NEWEST, Page, Query
from gateway.records.record import ID, UPDATED_AT, VERSION, deriving
from gateway.records.resource import Resource
from gateway.records.values import dates
from outbox.database.transaction import Tx

Edition = Sequence[Any]
"""The total, whether there is a next page, and the state of each record. Equal while none changes.

A state is id, version, time of the last change, and the derived values that are not constant.
"""


def has(query: Query) -> bool:
    """Return whether a list request that is not costly asks for the first page of a whole list."""
    begins = query.page == 1 and query.after is None and query.ids is None
    return begins and not query.nothing and not query.search


async def current(tx: Tx, resource: Resource, owner_id: str, limit: int, zone: str) -> Edition:
    """Return the edition of the first page as it is now."""
    row = await tx.one(statements.edition(resource, NEWEST), owner_id, resource.table, limit + 1)
    assert row is not None
    states = json.decode(row["records"] or "[]")
    if fields := _varying(resource):
        at = dates.Moment(tx.now, zone)
        derive = deriving(fields, statements.edition_columns(resource))
        for state in states:
            state[3:] = derive(at, state)
    return [row["n"], len(states) > limit, *states[:limit]]


def of(resource: Resource, page: Page) -> Edition:
    """Return the edition of a first page that was read whole."""
    places = [resource.derived_at[d.name] for d in _varying(resource)]
    states = [
        [r.row[ID], r.row[VERSION], r.row[UPDATED_AT], *[r.derived[place] for place in places]]
        for r in page.records
    ]
    return [page.total, page.onward is not None, *states]


@lru_cache(maxsize=64)
def _varying(resource: Resource) -> Sequence[Derived]:
    return varying(resource.derived)
