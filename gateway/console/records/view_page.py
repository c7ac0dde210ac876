"""The page of a record: its facts, its timeline, its events, and the records that point to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from markupsafe import Markup

from gateway.console.layout import pages, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.console.records import facts, linked_pages, verbs
from gateway.console.records.inputs import kind_of, plain
from gateway.console.records.nouns import Words, label_of
from gateway.console.records.references import Names
from gateway.console.records.resource_pages import ResourcePages, field_of
from gateway.domain.contacts import activities
from gateway.domain.contacts.activities import ACTIVITIES, RELATED, TYPES
from gateway.domain.webhooks import delivery_search
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.query import Query
from gateway.records.record import Record, check
from gateway.records.resource import Filter, Resource
from gateway.server.app_keys import DB
from outbox.database.transaction import Tx
from outbox.events.event_history import EventQuery
from outbox.queue.log.delivery_types import shown

EVENTS = 10
"""Events that the page of a record shows."""
ACTIVITIES_SHOWN = 10
RELATED_SHOWN = 5
MOST_RELATED = 500
"""Records that one list looks at, and counts."""
KINDS = {table: kind for kind, table in RELATED.items()}
"""The kind of record of a table that an activity can be about."""


@dataclass(frozen=True, slots=True)
class Pointing:
    """The records of a section whose field has the id of a record."""

    section: ResourcePages
    filter: Filter
    records: Sequence[Record]
    total: int
    """Up to MOST_RELATED + 1."""

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


async def related_of(
    tx: Tx, actor: Actor, record: Record, pointing: Sequence[tuple[ResourcePages, Filter]]
) -> list[Pointing]:
    """Return the newest records of each list that point to the record, without empty lists.

    Each list reads at most MOST_RELATED + 1 rows: those of a record with very many are a part.
    """
    related = []
    for section, offered in pointing:
        query = Query(limit=RELATED_SHOWN)
        query.few(section.resource, offered, record.id, MOST_RELATED + 1)
        page = await actions.page(tx, actor, section.resource, query)
        related.append(Pointing(section, offered, page.records, page.total))
    return related


async def timeline_of(tx: Tx, actor: Actor, record: Record) -> tuple[Sequence[Record], bool] | None:
    """Return the latest activities about a record, and whether there are more.

    None: there are none about records of this resource.
    """
    if record.resource.table not in KINDS:
        return None
    query = Query(limit=ACTIVITIES_SHOWN, counted=False, filters={"relatedTo": record.id})
    page = await actions.page(tx, actor, ACTIVITIES, query)
    return page.records, page.onward is not None


@dataclass(frozen=True, slots=True)
class Viewed:
    """What the page of a record shows."""

    record: Record
    names: Names
    activities: Sequence[Record] | None
    more_activities: bool
    related: Sequence[Pointing]
    more: Mapping[str, Any]


class View:
    """The page of the records of one section; `sections` are those whose records point to them."""

    def __init__(self, section: ResourcePages, sections: Sequence[ResourcePages]) -> None:
        self.section = section
        self.pointing: Sequence[tuple[ResourcePages, Filter]] = [
            (other, offered)
            for other, offered in pointing_at(section.resource, sections)
            # The timeline shows activities.
            if other.resource is not ACTIVITIES
        ]

    async def show(self, request: web.Request, visitor: SignedIn) -> web.StreamResponse:
        """Show a record."""
        return await self._show(request, visitor, {}, "")

    async def note(self, request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
        """Add an activity to the timeline of a record; the fields `type` and `description`."""
        resource, record_id = self.section.resource, pages.id_of(request)
        record = await request.app[DB].read(actions.read, visitor.actor, resource, record_id)
        typed = {
            "type": form.text("type"),
            "description": form.text("description").replace("\r\n", "\n").strip(),
        }
        about = {"relatedTo": record.id, "relatedType": KINDS[resource.table]}
        draft = check(ACTIVITIES, {**typed, **about}, from_json=True, creating=True)
        try:
            await request.app[DB].write(activities.create, visitor.actor, draft)
        except Refusal as refusal:
            if not refusal.faults:
                raise
            return await self._show(request, visitor, typed, refusal.faults[0].message)
        return pages.to(f"{self.section.path}/{record_id}", "note_added")

    async def events(self, request: web.Request, visitor: SignedIn) -> web.StreamResponse:
        """Show the latest events of a record with their deliveries, alone or within its page."""
        db, actor, record_id = request.app[DB], visitor.actor, pages.id_of(request)
        record = await db.read(actions.read, actor, self.section.resource, record_id)
        query = EventQuery(cause=record_id)
        result = await db.scan(
            actor.owner_id, delivery_search.events, actor, db.clock, query, after=None
        )
        active = {one.id for one in result.webhooks if one.state == "active"}
        context = {
            "section": self.section, "words": self.section.words(request), "record": record,
            "heading": self.section.heading(record), "found": result,
            "events": result.events[:EVENTS],
            "urls": {one.id: one.description or one.url for one in result.webhooks},
            "state_of": lambda one: shown(one, one.webhook_id in active),
        }  # fmt: skip
        alone = "HX-Request" not in request.headers
        template = "record_events.html" if alone else "parts/record_events.html"
        return templates.render(request, visitor, template, context)

    async def again(
        self, request: web.Request, visitor: SignedIn, more: Mapping[str, Any]
    ) -> web.StreamResponse:
        """Show a record once more, with what was wrong with a form on its page."""
        return await self._show(request, visitor, {}, "", more)

    async def _show(
        self,
        request: web.Request,
        visitor: SignedIn,
        note: Mapping[str, str],
        fault: str,
        more: Mapping[str, Any] | None = None,
    ) -> web.StreamResponse:
        section = self.section
        viewed = await request.app[DB].read(self._viewed, visitor.actor, pages.id_of(request))
        record, look = viewed.record, section.look(request, viewed.names)
        texts = request[READER].texts
        hidden = (*section.parts.left_out, section.columns[0], "status")
        context = {
            "section": section, "parts": section.parts, "words": section.words(request),
            "record": record, "heading": section.heading(record),
            "state": record["status"] if "status" in section.resource.named else "",
            "facts": facts.facts(section.resource, record, look, hidden),
            "activities": viewed.activities, "more_activities": viewed.more_activities,
            "kinds": TYPES, "note": note, "note_fault": fault,
            "related": [(one, Words(texts, one.section.resource)) for one in viewed.related],
            "cells_of": lambda one, other: _beside(one, other, request),
            "offers": linked_pages.of(request, section.name),
            "announces": bool(section.resource.events), "verbs": verbs.of(record),
            **viewed.more, **(more or {}),
        }  # fmt: skip
        return templates.render(
            request, visitor, "record.html", context, status=400 if fault or more else 200
        )

    async def _viewed(self, tx: Tx, actor: Actor, record_id: str) -> Viewed:
        section = self.section
        record, names = await section.one(tx, actor, record_id)
        timeline = await timeline_of(tx, actor, record)
        pointing = await related_of(tx, actor, record, self.pointing)
        more = section.parts.more
        beside = await more(tx, actor, record) if more is not None else {}
        latest, further = timeline if timeline is not None else (None, False)
        return Viewed(record, names, latest, further, pointing, beside)


def _beside(pointing: Pointing, record: Record, request: web.Request) -> list[tuple[str, Markup]]:
    """Return up to two cells of a short list, besides the name: not what leads back here.

    A number that is no amount has its label.
    """
    back = field_of(pointing.section.resource, pointing.filter.name)
    look = pointing.section.look(request, {})
    named = pointing.section.resource.named
    cells = []
    for name in pointing.section.columns[1:]:
        field = named.get(name)
        if field is back or (field is not None and field.reference is not None):
            continue
        text = facts.cell_of(pointing.section.resource, name, look)(record)
        if text:
            bare = field is not None and kind_of(plain(field.format.schema)) == "number"
            label = label_of(look.texts, name) if bare else ""
            cells.append((label, Markup(text)))  # noqa: S704 - a cell escapes what it writes
    return cells[:2]
