"""Finds the record that a line of a file updates: by its id, else by the key of its resource."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.domain import record_origins
from gateway.domain.imports.import_jobs import Import
from gateway.domain.record_origins import normal
from gateway.records import store
from gateway.records.audit import Actor
from gateway.records.record import OWNER_ID, Draft, Record, record_of
from gateway.records.resource import Resource
from gateway.records.values.formats import LONG
from outbox.database import locks
from outbox.database.sql import items
from outbox.database.transaction import Tx
from outbox.ids import is_id

# The locks of gateway.domain.contacts.upsert, in the order of the keys: a key without a record has
# no row to lock.
_LOCK_ALL = f"""
select pg_advisory_xact_lock(hashtextextended(keys.value, {locks.CONTACT_KEYS})) as locked
from json_array_elements_text(cast($1 as json)) as keys(value)
"""
AMONG = """
/*sqlite in (select value from json_each($2))*/
/*postgres = any (array(select json_array_elements_text(cast($2 as json))))*/
"""


@dataclass(slots=True)
class Ahead:
    """What is known of the lines of a transaction before the first of them: their keys are locked.

    A line whose id and key are not there needs no look-up of its own.
    """

    ids: set[str]
    keys: set[str]
    """The keys that records have, and those that lines before have written."""
    origins: dict[str, str] = field(default_factory=dict)
    """The owner's record of each id of another account that the lines have."""


async def lock_all(tx: Tx, names: Sequence[str]) -> None:
    """Let all other transactions that lock one of these sorted names wait for this one."""
    if names and tx.engine == "postgres":
        await tx.all(_LOCK_ALL, items(names))


async def look_ahead(
    tx: Tx,
    actor: Actor,
    resource: Resource,
    lines: Sequence[tuple[str, Draft]],
    named: Sequence[str] = (),
) -> Ahead:
    """Lock the keys of lines, each an id and a draft; return which ids and keys there are.

    `named` are the ids of other records in the lines.
    """
    ids = sorted({normal(record_id) for record_id, _ in lines if is_id(normal(record_id))})
    column = _key(resource, Draft())[0]
    keys = sorted({str(k) for _, draft in lines if (k := _key(resource, draft)[1]) is not None})
    await lock_all(tx, [f"{actor.owner_id} {key}" for key in keys])
    there = Ahead(set(), set())
    if ids:
        sql = f"select id from {resource.table} where owner_id = $1 and id {AMONG}"
        there.ids |= {row["id"] for row in await tx.all(sql, actor.owner_id, items(ids))}
    if keys:
        table, column = _place(resource, column)
        sql = f"select {column} as found from {table} where owner_id = $1 and {column} {AMONG}"
        there.keys |= {row["found"] for row in await tx.all(sql, actor.owner_id, items(keys))}
    there.origins = await record_origins.known(tx, actor.owner_id, [*set(ids) - there.ids, *named])
    return there


def note(resource: Resource, ahead: Ahead, draft: Draft) -> None:
    """Note the key of a line that was written, for the lines after it."""
    _, value = _key(resource, draft)
    if value is not None:
        ahead.keys.add(str(value))


async def find(
    tx: Tx, actor: Actor, resource: Resource, job: Import, record_id: str, draft: Draft,
    ahead: Ahead,
) -> Record | None:  # fmt: skip
    """Return the owner's record that a line names, locked; None for a new one.

    Lines of other installations have ids that name no record here. They stay apart from each
    other, so that two contacts with one email stay two.
    """
    own_id = normal(record_id)
    own_id = own_id if own_id in ahead.ids else ahead.origins.get(own_id, "")
    if own_id:
        record = await _own(tx, actor, resource, own_id)
        if record is not None:
            return record
    column, value = _key(resource, draft)
    if value is None or str(value) not in ahead.keys:
        return None
    table, _ = _place(resource, column)
    if table != resource.table:
        row = await tx.one(
            f"select record_id as id from {table} where owner_id = $1 and value = $2",
            actor.owner_id,
            value,
        )
    else:
        before = job.created_at if record_id else tx.now + 1
        row = await tx.one(
            f"""select id from {resource.table} where owner_id = $1 and {column} = $2
            and created_at < $3 order by created_at, id limit 1""",
            actor.owner_id,
            value,
            before,
        )
    return None if row is None else await _own(tx, actor, resource, row["id"])


def add_notes(record: Record, draft: Draft, lines: Sequence[str]) -> None:
    """Add lines to the notes of a record that is there, each once."""
    had = (draft.values if "notes" in draft.sent else record)["notes"] or ""
    there = set(had.split("\n"))
    more = [line for line in lines if line not in there]
    text = "\n".join([had] * bool(had) + more)
    if more and len(text) <= LONG:
        draft.values["notes"] = text


async def _own(tx: Tx, actor: Actor, resource: Resource, record_id: str) -> Record | None:
    if not is_id(record_id):
        return None
    row = await store.fetch(tx, resource, record_id, lock=True)
    if row is None or row[OWNER_ID] != actor.owner_id:
        return None
    return record_of(resource, row, tx.now, actor.zone)


def differing(record: Record, sent: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a line that are not those that an export of the record shows."""
    return {name: value for name, value in sent.items() if value != record.shown(name)}


def _place(resource: Resource, column: str) -> tuple[str, str]:
    """Return the table and the column in which the keys in use are found."""
    unique = resource.named[resource.key].unique
    if unique is not None and unique.within == "owner":
        return unique.table, "value"
    return resource.table, column


def _key(resource: Resource, draft: Draft) -> tuple[str, Any]:
    """Return the column of the key, and the value of the draft, None without one."""
    if not resource.key:
        return "", None
    field, values = resource.named[resource.key], draft.values
    column = field.beside[0].column if field.beside else field.column
    return column, values.get(column) if field.name in draft.sent else None


def key_of(resource: Resource, draft: Draft) -> str | None:
    """Return the key of a draft in the form in which keys are compared; None without one."""
    value = _key(resource, draft)[1]
    return None if value is None else str(value)


def with_source(resource: Resource, sent: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a new record, whose `source` is `import` unless the file names one."""
    field = resource.creatable.get("source")
    if field is None or "import" not in field.format.schema.get("enum", ()):
        return sent
    return {"source": "import", **sent}
