"""Finds the record that a line of a file updates: by its id, else by the key of its resource."""

from collections.abc import Mapping
from typing import Any

from gateway.domain.imports.jobs import Import
from gateway.records import store
from gateway.records.access import Actor
from gateway.records.draft import Draft
from gateway.records.record import OWNER_ID, VERSION
from gateway.records.resource import Resource
from outbox.database.transaction import Tx
from outbox.ids import is_id

# The lock of gateway.domain.contacts.upsert: a key without a record has no row to lock.
_LOCK = "select pg_advisory_xact_lock(hashtextextended($1, 0))"


async def find(
    tx: Tx, actor: Actor, resource: Resource, job: Import, record_id: str, draft: Draft
) -> tuple[str, int] | None:
    """Return id and version of the owner's record that a line names, locked; None for a new one.

    Lines of other installations have ids that name no record here. They stay apart from each
    other, so that two contacts with one email stay two.
    """
    if record_id:
        found = await _own(tx, actor, resource, record_id.strip().lower())
        if found is not None:
            return found
    column, value = _key(resource, draft)
    if value is None:
        return None
    if tx.engine == "postgres":
        await tx.one(_LOCK, f"{actor.owner_id} {value}")
    unique = resource.named[resource.key].unique
    if unique is not None and unique.within == "owner":
        row = await tx.one(
            f"select record_id as id from {unique.table} where owner_id = $1 and value = $2",
            actor.owner_id, value,
        )  # fmt: skip
    else:
        before = job.created_at if record_id else tx.now + 1
        row = await tx.one(
            f"""select id from {resource.table} where owner_id = $1 and {column} = $2
            and created_at < $3 order by created_at, id limit 1""",
            actor.owner_id, value, before,
        )  # fmt: skip
    return None if row is None else await _own(tx, actor, resource, row["id"])


async def _own(tx: Tx, actor: Actor, resource: Resource, record_id: str) -> tuple[str, int] | None:
    if not is_id(record_id):
        return None
    row = await store.fetch(tx, resource, record_id, lock=True)
    if row is None or row[OWNER_ID] != actor.owner_id:
        return None
    return record_id, int(row[VERSION])


def _key(resource: Resource, draft: Draft) -> tuple[str, Any]:
    """Return the column of the key, and the value of the draft, None without one."""
    if not resource.key:
        return "", None
    field, values = resource.named[resource.key], draft.values
    column = field.beside[0].column if field.beside else field.column
    return column, values.get(column) if field.name in draft.sent else None


def with_source(resource: Resource, sent: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a new record, whose `source` is `import` unless the file names one."""
    field = resource.creatable.get("source")
    if field is None or "import" not in field.format.schema.get("enum", ()):
        return sent
    return {"source": "import", **sent}
