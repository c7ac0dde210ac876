"""Reads the records that others refer to: one query for each resource, whatever the page.

It reads the records of one owner, at most MOST of each resource, in the order of their mention.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import json

from gateway.records import actions, statements, store
from gateway.records.audit import Actor
from gateway.records.query import Page, Query
from gateway.records.record import ID, Record, records_of
from gateway.records.resource import Field, Resource
from outbox.database.sql import AMONG_IDS, items
from outbox.database.transaction import Tx

MOST = 500
"""Most records of a resource that a response includes."""
# The ids are few: find the records by them, not by their owner.
_WHERE = f"/*sqlite +*/ owner_id = $1 and id {AMONG_IDS.replace('$1', '$2')}"


@dataclass(frozen=True, eq=False, slots=True)
class Include:
    """A reference to follow. `targets` are the resources by the text of `by`, or by "" alone."""

    name: str
    field: Field
    targets: Mapping[str, Resource]
    by: str = ""
    """The column that selects the resource."""

    def ids(self, record: Record) -> Iterable[tuple[Resource, str]]:
        """Yield the records that a record refers to."""
        value = record[self.field.column]
        target = self.targets.get(record[self.by] if self.by else "")
        if value is None or target is None:
            return
        for one in json.decode(value) if self.field.listed_in else (value,):
            yield target, one


@dataclass(frozen=True, slots=True)
class Included:
    """The included records of each resource; `truncated` when some have more than MOST."""

    pages: Mapping[Resource, Page] = field(default_factory=dict)
    truncated: bool = False


def offered(resource: Resource, by_table: Mapping[str, Resource]) -> dict[str, Include]:
    """Return what responses with a resource can include, by name: `company` of `companyId`."""
    offers = {}
    for its, to in resource.references:
        tables = to.tables or {"": to.table}
        targets = {kind: by_table[table] for kind, table in tables.items() if table in by_table}
        if targets:
            name = _name(its)
            by = resource.named[to.by].column if to.by else ""
            offers[name] = Include(name, its, targets, by)
    return offers


async def one(
    tx: Tx, actor: Actor, resource: Resource, record_id: str, includes: Sequence[Include]
) -> tuple[Record, Included]:
    """Return a record and those that it refers to. Raises not_found, then forbidden."""
    record = await actions.read(tx, actor, resource, record_id)
    return record, await _read(tx, actor, includes, [record])


async def page(
    tx: Tx, actor: Actor, resource: Resource, query: Query, includes: Sequence[Include]
) -> tuple[Page, Included]:
    """Return a page of the actor's own records, and those that they refer to. Raises forbidden."""
    content = await actions.page(tx, actor, resource, query)
    return content, await _read(tx, actor, includes, content.records)


async def _read(
    tx: Tx, actor: Actor, includes: Sequence[Include], records: Sequence[Record]
) -> Included:
    ids: dict[Resource, dict[str, None]] = {
        target: {} for include in includes for target in include.targets.values()
    }
    for include in includes:
        for record in records:
            for target, record_id in include.ids(record):
                ids[target].setdefault(record_id)
    pages = {}
    for target, mentioned in ids.items():
        wanted = [*mentioned][:MOST]
        pages[target] = await _some(tx, actor, target, wanted) if wanted else Page([], 0)
    return Included(pages, any(len(mentioned) > MOST for mentioned in ids.values()))


async def _some(tx: Tx, actor: Actor, resource: Resource, ids: Sequence[str]) -> Page:
    """Return the actor's records with these ids, in that order, as a page."""
    sql = statements.page(resource, _WHERE, "id", size=3, offset=4, late=False)
    rows, long = await store.fetch_all(tx, sql, actor.owner_id, items(ids), MOST, 0)
    place = {record_id: number for number, record_id in enumerate(ids)}
    rows.sort(key=lambda row: place[row[ID]])
    return Page(records_of(resource, rows, tx.now, actor.zone), len(rows), None, long)


def _name(reference: Field) -> str:
    if reference.listed_in:
        return reference.name.removesuffix("Ids") + "s"
    return reference.name.removesuffix("Id").removesuffix("To")
