"""Reads the timeline of a record: the latest activities about it."""

from collections.abc import Sequence

from gateway.domain.contacts.activities import ACTIVITIES, RELATED
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.query import Query
from gateway.records.record import Record
from outbox.database.transaction import Tx

SHOWN = 10
KINDS = {table: kind for kind, table in RELATED.items()}
"""The kind of record of a table that an activity can be about."""


async def of(tx: Tx, actor: Actor, record: Record) -> tuple[Sequence[Record], bool] | None:
    """Return the latest activities about a record, and whether there are more.

    None: there are none about records of this resource.
    """
    if record.resource.table not in KINDS:
        return None
    query = Query(limit=SHOWN, counted=False, filters={"relatedTo": record.id})
    page = await actions.page(tx, actor, ACTIVITIES, query)
    return page.records, page.onward is not None
