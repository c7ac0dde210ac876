"""What the pages of one resource have in common: its address, its columns, and how it is shown."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from aiohttp import web

from gateway.console.layout.reader import READER
from gateway.console.records import facts, inputs, listing, references
from gateway.console.records.facts import CellStyle
from gateway.console.records.inputs import Input
from gateway.console.records.nouns import Words
from gateway.console.records.page_parts import Parts
from gateway.console.records.references import Names
from gateway.domain.catalogue import BY_PLURAL, BY_TABLE, Entry
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.record import Record
from gateway.records.resource import Field, Filter, Resource
from gateway.records.values.dates import Moment
from gateway.server.app_keys import DB
from gateway.texts import Texts
from outbox.database.transaction import Tx

MOST_COLUMNS = 4
"""Fields between the name and the time of a list that nobody has arranged."""
UNLISTED = ("rows", "lines", "json", "records")


class ResourcePages:
    """A resource with the parts of its pages."""

    def __init__(self, entry: Entry, parts: Parts) -> None:
        self.entry = entry
        self.parts = parts
        self.resource: Resource = entry.resource
        self.name = self.resource.plural
        self.path = f"/console/{self.name}"
        self.limits = listing.LIMITS
        derived = [one.name for one in self.resource.derived]
        self.offered = (*dict.fromkeys((*self.resource.named, *derived)), *facts.TIMES)
        """The columns that a list may have."""
        self.columns = tuple(parts.columns) or self._usual()
        """Its usual columns, the first of which names the record."""
        self.tabs: Filter | None = self.resource.offered.get(parts.tabs)
        self.tab_values: Sequence[str] = ()
        if self.tabs is not None:
            self.tab_values = self.tabs.allowed or ("true", "false")
        self.inputs = cache(self._inputs)
        """Returns the inputs of the form in a language, in order."""
        self.done = cache(self._done)
        """Returns the key, without `done.`, of the message after a change: created, deleted."""

    def heading(self, record: Record) -> str:
        """Return the text that names a record: its first column."""
        return str(record.shown(self.columns[0]) or "")

    def words(self, request: web.Request) -> Words:
        """Return the texts of the pages in the reader's language."""
        return Words(request[READER].texts, self.resource)

    def look(self, request: web.Request, names: Names) -> CellStyle:
        """Return how a page shows the values of records."""
        reader, now = request[READER], request.app[DB].clock.wall()
        return CellStyle(
            reader.texts, lambda at: reader.relative(at, now), names, self.parts.links,
            Moment(now, reader.zone.key),
        )  # fmt: skip

    def writable(self, *, creating: bool) -> list[Field]:
        """Return the fields of the form, in order."""
        without = self.parts.unwritten
        fields = [
            field
            for field in self.resource.fields
            if (field.on_create if creating else field.on_update) and field.name not in without
        ]
        return sorted(fields, key=lambda field: field.name in self.parts.last)

    def _inputs(self, texts: Texts, *, creating: bool) -> Sequence[Input]:
        return tuple(
            replace(one, columns=[*self._columns(texts, one)]) if one.columns else one
            for one in inputs.inputs(texts, self.writable(creating=creating))
        )

    def _done(self, texts: Texts, change: str) -> str:
        known = f"{self.resource.noun.replace(' ', '_')}_{change}"
        return known if f"done.{known}" in texts else f"record_{change}"

    def _columns(self, texts: Texts, form_input: Input) -> Iterator[Input]:
        """Yield the columns of an input with rows that the form has."""
        left_out = self.parts.columns_left_out.get(form_input.name, ())
        for column in form_input.columns:
            choices = self.parts.choices.get(f"{form_input.name}.{column.name}")
            if choices is not None:
                hint = texts(f"choice_hint.{self.resource.noun}.{form_input.name}.{column.name}")
                yield replace(column, kind="choice", options=choices, hint=hint)
            elif column.name not in left_out:
                yield column

    def group_of(self, name: str) -> str:
        """Return the section of the form in which a field is; empty when it has none."""
        groups = self.parts.groups
        found = (group for group, fields in groups.items() if name in fields)
        return next(found, ["", *groups][-1])

    def target(self, name: str) -> Resource | None:
        """Return the resource whose ids a filter takes, or None."""
        if self.resource.offered[name].kind != "id":
            return None
        if name in self.parts.links:
            return BY_PLURAL[self.parts.links[name]]
        field = field_of(self.resource, name)
        if field is None or field.reference is None:
            return None
        return BY_TABLE.get(field.reference.table)

    async def one(self, tx: Tx, actor: Actor, record_id: str) -> tuple[Record, Names]:
        """Return a record and the names of those it refers to. Raises not_found, forbidden."""
        record = await actions.read(tx, actor, self.resource, record_id)
        fields = self.resource.fields
        return record, await references.names_of(tx, actor, [record], fields, self.parts.links)

    def _usual(self) -> tuple[str, ...]:
        named = self.resource.named
        heading = self.resource.heading or next(iter(named))
        short = [
            field.name
            for field in self.resource.fields
            if field.name != heading
            and field.column not in self.resource.long
            and inputs.kind_of(field.format.schema) not in UNLISTED
        ]
        return (heading, *short[:MOST_COLUMNS], "createdAt")


def field_of(resource: Resource, name: str) -> Field | None:
    """Return the field whose ids the filter `name` compares: `contactId` reads `contactIds`."""
    many = resource.named.get(f"{name}s")
    return resource.named.get(name) or (many if many is not None and many.listed_in else None)
