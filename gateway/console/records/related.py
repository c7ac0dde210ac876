"""Finds the records that point to a record, from the references and filters of all resources."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.console.records.resource_pages import ResourcePages, field_of
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.query import Query
from gateway.records.record import Record
from gateway.records.resource import Filter, Resource
from outbox.database.transaction import Tx

SHOWN = 5
MOST = 500
"""Records that one list looks at, and counts."""


@dataclass(frozen=True, slots=True)
class Pointing:
    """The records of a section whose field has the id of a record."""

    section: ResourcePages
    filter: Filter
    records: Sequence[Record]
    total: int
    """Up to MOST + 1."""

    def all(self, record: Record) -> str:
        """Return the address of the whole list."""
        return f"{self.section.path}?{self.filter.name}={record.id}"

    def new(self, record: Record) -> str:
        """Return the address of the form that makes another one; empty when there is none."""
        field = field_of(self.section.resource, self.filter.name)
        if self.section.entry.create is None or field is None or not field.on_create:
            return ""
        return f"{self.section.path}/new?{field.name}={record.id}"


def pointing_at(
    resource: Resource, sections: Sequence[ResourcePages]
) -> list[tuple[ResourcePages, Filter]]:
    """Return each section with a filter by a reference to records of `resource`."""
    return [
        (section, offered)
        for section in sections
        for offered in section.resource.filters
        if offered.kind == "id" and section.target(offered.name) is resource
    ]


async def of(
    tx: Tx, actor: Actor, record: Record, pointing: Sequence[tuple[ResourcePages, Filter]]
) -> list[Pointing]:
    """Return the newest records of each list that point to the record, without empty lists.

    Each list reads at most MOST + 1 rows, so the lists of a record with very many are a part.
    """
    found = []
    for section, offered in pointing:
        query = Query(limit=SHOWN)
        query.few(section.resource, offered, record.id, MOST + 1)
        page = await actions.page(tx, actor, section.resource, query)
        found.append(Pointing(section, offered, page.records, page.total))
    return found
