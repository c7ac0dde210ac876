"""Reads records as snapshots send them: the `data` of `*.created`, with the fields as they are."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import cast

from gateway.domain.catalogue import RESOURCES
from gateway.records import settled_rows, store
from gateway.records.actions import data_of, record_fields
from gateway.records.record import CREATED_AT, Row, records_of
from gateway.records.resource import Resource
from outbox.database.index_plans import by_index
from outbox.database.transaction import Tx
from outbox.queue.replays.snapshot_steps import Copy

CREATED = "created"
SENT: Mapping[str, Resource] = {
    f"{resource.noun}.{CREATED}": resource for resource in RESOURCES if CREATED in resource.events
}
"""The events that a snapshot can send, with the records that it sends them of."""


async def read(
    tx: Tx, owner_id: str, name: str, after: tuple[int, str], most: int
) -> Sequence[Copy]:
    """Return the next records of an owner; see outbox.queue.replays.snapshot_steps.Source."""
    resource = SENT.get(name)
    user = await tx.one("select timezone from users where id = $1", owner_id)
    if resource is None or user is None:
        return ()
    await by_index(tx)
    # Both drivers' rows can be read by position.
    rows = cast("Sequence[Row]", await tx.all(_next(resource), owner_id, *after, most))
    records = records_of(resource, rows, tx.now, user["timezone"])
    return [
        Copy(
            record.id, record.version, record.row[CREATED_AT],
            data_of(record, resource.events[CREATED]), record_fields(record, None),
        )
        for record in records
    ]  # fmt: skip


async def counts(tx: Tx, owner_id: str, names: Sequence[str]) -> Mapping[str, int]:
    """Return how many records the owner has of which a snapshot sends each of these events."""
    return {name: await store.total(tx, owner_id, SENT[name]) for name in names}


@lru_cache(maxsize=64)
def _next(resource: Resource) -> str:
    """Return the query for the $4 records of the owner $1 behind the place $2, $3.

    A delete or a change waits for its lock, as for that of a reference, and it waits for theirs.
    """
    return (
        f"select {settled_rows.columns(resource)} from {resource.table}"
        f" where owner_id = $1 and (created_at, id) > ($2, $3){settled_rows.seen(resource)}"
        " order by created_at, id limit $4 /*postgres for key share*/"
    )
