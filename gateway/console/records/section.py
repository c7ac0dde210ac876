"""The pages of a kind of records, made from its declaration: list, show, create, edit, delete."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from markupsafe import Markup, escape

from gateway.console.frame import error_pages, pages, polling, templates
from gateway.console.frame.display import inert
from gateway.console.frame.forms import Form
from gateway.console.frame.guard import Visitor
from gateway.console.frame.reader import READER
from gateway.console.records import facts, inputs, listing
from gateway.console.records.facts import Look, Names
from gateway.console.records.inputs import Input, Typed
from gateway.console.records.listing import Asked
from gateway.console.records.parts import Parts
from gateway.console.records.words import Words, label_of
from gateway.domain.catalogue import Entry
from gateway.records import actions, cascades
from gateway.records.access import Actor
from gateway.records.draft import check
from gateway.records.errors import Refusal
from gateway.records.query import Page, costly
from gateway.records.record import Record
from gateway.records.resource import Field, Filter, Remove, Resource
from gateway.records.values.format import of_json
from gateway.server.app_keys import DB
from outbox.database.transaction import Tx

MOST_COLUMNS = 4
"""Fields between the name and the time of a list that nobody has arranged."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a list: its label, and the address of the list in its order if it has one."""

    name: str
    label: str
    sort: str = ""
    sorted: str = ""
    """The order that the list has by this column, in the words of aria-sort."""


@dataclass(frozen=True, slots=True)
class Row:
    """A record of a list, its name and its further cells as HTML."""

    record: Record
    name: Markup
    cells: Sequence[Markup]


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of a list."""

    rows: Sequence[Row]
    columns: Sequence[Column]
    total: int
    next: str
    previous: str


class Section:
    """The pages of one kind of records."""

    def __init__(self, entry: Entry, parts: Parts) -> None:
        self.entry = entry
        self.parts = parts
        self.resource: Resource = entry.resource
        self.name = self.resource.plural
        self.path = f"/console/{self.name}"
        derived = [one.name for one in self.resource.derived]
        self.offered = (*dict.fromkeys((*self.resource.named, *derived)), *facts.TIMES)
        self.columns = tuple(parts.columns) or self._usual()
        self.tabs: Filter | None = self.resource.offered.get(parts.tabs)
        self.tab_values = (self.tabs.allowed or ("true", "false")) if self.tabs else ()
        self.limits = listing.LIMITS

    async def index(self, request: web.Request, visitor: Visitor) -> web.StreamResponse:
        """Show a page of the list; see gateway.console.records.listing."""
        asked = listing.asked(
            self.resource, self.path, request.query, self.parts.tabs, self.offered,
            self.columns[1:],
        )  # fmt: skip
        look, page = await self._listed(request, visitor, asked)
        listed = self._rows(asked, look, page)
        context = {
            "section": self, "parts": self.parts, "words": Words(look.texts, self.resource),
            "asked": asked, "page": listed, "selecting": asked.selecting and bool(listed.rows),
            "scoped": self._scoped(asked, look), "filters": self._filters(look),
            "columns": self._choice(asked, look),
        }  # fmt: skip
        if not self.parts.live:
            return templates.render(request, visitor, "records.html", context)
        return polling.live(request, visitor, "records.html", "parts/record_rows.html", context)

    async def show(self, request: web.Request, visitor: Visitor) -> web.StreamResponse:
        """Show a record."""
        record, names, more = await request.app[DB].read(
            self._shown, visitor.actor, pages.id_of(request)
        )
        look = self._look(request, names)
        context = {
            "section": self, "parts": self.parts, "words": Words(look.texts, self.resource),
            "record": record, "heading": self.heading(record),
            "state": record["status"] if "status" in self.resource.named else "",
            "facts": facts.facts(
                self.resource, record, look, (*self.parts.left_out, self.columns[0], "status")
            ),
            **more,
        }  # fmt: skip
        return templates.render(request, visitor, "record.html", context)

    async def new(self, request: web.Request, visitor: Visitor) -> web.StreamResponse:
        """Show an empty form; a query parameter with the name of a field fills it in."""
        fields = self._writable(creating=True)
        form_inputs = inputs.inputs(request[READER].texts, fields)
        typed = inputs.of_defaults(fields, form_inputs)
        return self._form(request, visitor, None, form_inputs, typed)

    async def create(
        self, request: web.Request, visitor: Visitor, form: Form
    ) -> web.StreamResponse:
        """Create a record and show it."""
        assert self.entry.create is not None, "no form leads here"
        form_inputs = inputs.inputs(request[READER].texts, self._writable(creating=True))
        typed = inputs.of_form(form, form_inputs)
        values = inputs.values(typed, form_inputs, creating=True)
        draft = check(self.resource, values, read=of_json, creating=True)
        try:
            record = await request.app[DB].write(self.entry.create, visitor.actor, draft)
        except Refusal as refusal:
            return self._form(request, visitor, None, form_inputs, typed, refusal)
        return pages.to(f"{self.path}/{record.id}", self._done(request, "created"))

    async def edit_page(self, request: web.Request, visitor: Visitor) -> web.StreamResponse:
        """Show the form with the values of a record."""
        record, _ = await request.app[DB].read(self._one, visitor.actor, pages.id_of(request))
        form_inputs = inputs.inputs(request[READER].texts, self._writable(creating=False))
        typed = inputs.of_record(record, form_inputs)
        return self._form(request, visitor, record, form_inputs, typed)

    async def edit(self, request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
        """Save an edited record unless it has changed since the form was loaded."""
        assert self.entry.change is not None, "no form leads here"
        record, _ = await request.app[DB].read(self._one, visitor.actor, pages.id_of(request))
        form_inputs = inputs.inputs(request[READER].texts, self._writable(creating=False))
        typed = inputs.of_form(form, form_inputs)
        values = inputs.values(typed, form_inputs, creating=False)
        try:
            await request.app[DB].write(
                self.entry.change, visitor.actor, record.id,
                check(self.resource, values, read=of_json), frozenset({form.text("version")}),
            )  # fmt: skip
        except Refusal as refusal:
            if refusal.code == "precondition_failed":
                raise Refusal("conflict", "error.changed") from None
            return self._form(request, visitor, record, form_inputs, typed, refusal)
        return pages.to(f"{self.path}/{record.id}", "saved")

    async def delete_page(self, request: web.Request, visitor: Visitor) -> web.StreamResponse:
        """Ask for confirmation before a record is deleted, and tell what goes with it."""
        record, going = await request.app[DB].read(self._going, visitor.actor, pages.id_of(request))
        texts = request[READER].texts
        context = {
            "section": self, "words": Words(texts, self.resource), "record": record,
            "heading": self.heading(record), "most": cascades.MOST,
            "going": [
                (how, Words(texts, facts.BY_PLURAL[plural]).title, count)
                for how, plural, count in going
            ],
        }  # fmt: skip
        return templates.render(request, visitor, "record_delete.html", context)

    async def delete(
        self, request: web.Request, visitor: Visitor, form: Form
    ) -> web.StreamResponse:
        """Delete a record unless it has changed since the question was shown."""
        expected = frozenset({form.text("version")})
        unit, record_id = self.entry.remove, pages.id_of(request)
        try:
            if unit is not None:
                await request.app[DB].write(unit, visitor.actor, record_id, expected)
            else:
                await request.app[DB].write(
                    actions.remove, visitor.actor, self.resource, record_id, expected
                )
        except Refusal as refusal:
            if refusal.code == "precondition_failed":
                raise Refusal("conflict", "error.changed_delete") from None
            raise
        return pages.to(self.path, self._done(request, "deleted"))

    def heading(self, record: Record) -> str:
        """Return the text that names a record: its first column."""
        return str(record.shown(self.columns[0]) or "")

    def _usual(self) -> tuple[str, ...]:
        """Return the columns of a list that nobody has arranged."""
        named = self.resource.named
        heading = facts.heading_of(self.resource) or next(iter(named))
        short = [
            field.name
            for field in self.resource.fields
            if field.name != heading
            and field.column not in self.resource.long
            and inputs.kind_of(field.format.schema) not in ("rows", "lines", "json")
        ]
        return (heading, *short[:MOST_COLUMNS], "createdAt")

    def _writable(self, *, creating: bool) -> list[Field]:
        fields = [f for f in self.resource.fields if (f.on_create if creating else f.on_update)]
        return sorted(fields, key=lambda field: field.name in self.parts.last)

    def _done(self, request: web.Request, change: str) -> str:
        return Words(request[READER].texts, self.resource).done(change)

    def _look(self, request: web.Request, names: Names) -> Look:
        reader, now = request[READER], request.app[DB].clock.wall()
        return Look(reader.texts, lambda at: reader.when(at, now), names, self.parts.links)

    async def _listed(
        self, request: web.Request, visitor: Visitor, asked: Asked
    ) -> tuple[Look, Page]:
        """Read a page of the list; one that looks at many records takes its turn."""
        db, actor, query = request.app[DB], visitor.actor, asked.query()
        if costly(self.resource, query) is None:
            page, names = await db.read(self._page, actor, asked)
        else:
            page, names = await db.scan(actor.owner_id, self._page, actor, asked)
        return self._look(request, names), page

    async def _page(self, tx: Tx, actor: Actor, asked: Asked) -> tuple[Page, Names]:
        page = await actions.page(tx, actor, self.resource, asked.query())
        named = self.resource.named
        shown = [named[name] for name in asked.columns or self.columns if name in named]
        names = await facts.names_of(tx, actor, page.records, shown, self.parts.links)
        scope: dict[str, str] = {}
        for name, text in asked.filters.items():
            target = self.target(name)
            if target is not None:
                scope |= await facts.named(tx, actor, target, [text.lower()])
        return page, {**names, **scope}

    def target(self, name: str) -> Resource | None:
        """Return the resource whose ids a filter takes, or None."""
        offered = self.resource.offered[name]
        if offered.kind != "id":
            return None
        if name in self.parts.links:
            return facts.BY_PLURAL[self.parts.links[name]]
        for field, reference in self.resource.references:
            if name == field.name or (field.listed_in and f"{name}s" == field.name):
                return facts.BY_TABLE.get(reference.table)
        return None

    def _rows(self, asked: Asked, look: Look, page: Page) -> Listed:
        names = (self.columns[0], *(asked.columns or self.columns[1:]))
        names = tuple(dict.fromkeys(names))
        heading, *others = (facts.cell_of(self.resource, name, look) for name in names)
        without = escape(look.texts("records.long"))
        none = facts.NONE
        rows = [
            Row(
                record,
                Markup(heading(record) or without),  # noqa: S704 - a cell escapes what it writes
                [Markup(cell(record)) or none for cell in others],  # noqa: S704 - as above
            )
            for record in page.records
        ]
        forward = backward = ""
        if page.onward is not None:
            forward = asked.to(after=f"{page.onward.at}-{page.onward.record_id}")
        elif asked.sort != listing.NEWEST and page.total > asked.page * asked.limit:
            forward = asked.to(page=asked.page + 1) if asked.page < listing.MOST_PAGES else ""
        if page.back and page.records:
            first = page.records[0]
            backward = asked.to(before=f"{first['created_at']}-{first.id}")
        elif asked.page > 1:
            backward = asked.to(page=asked.page - 1)
        columns = [self._column(asked, look, name) for name in names]
        return Listed(rows, columns, page.total, forward, backward)

    def _column(self, asked: Asked, look: Look, name: str) -> Column:
        label = label_of(look.texts, name)
        if name not in {one.name for one in self.resource.sorts}:
            return Column(name, label)
        field = self.resource.named.get(name)
        # Texts begin with A, but the newest and the largest are wanted first.
        text = field is not None and inputs.kind_of(field.format.schema) in ("text", "time")
        down = {name: "ascending", f"-{name}": "descending"}
        return Column(
            name, label, asked.sorted_by(name, "" if text else "-"), down.get(asked.sort, "none")
        )

    def _choice(self, asked: Asked, look: Look) -> list[tuple[str, str, bool]]:
        """Return name, label and presence of each column that a reader may choose."""
        shown = asked.columns or self.columns
        return [
            (name, label_of(look.texts, name), name in shown)
            for name in self.offered
            if name != self.columns[0]
        ]

    def _scoped(self, asked: Asked, look: Look) -> list[tuple[str, str, str]]:
        """Return label, name and removal of each filter by an id that the list has."""
        return [
            (label_of(look.texts, name), inert(look.names.get(text.lower(), text)),
             asked.only(name, ""))
            for name, text in asked.filters.items()
            if self.resource.offered[name].kind == "id"
        ]  # fmt: skip

    def _filters(self, look: Look) -> list[tuple[Filter, str, list[tuple[str, str]]]]:
        """Return the filters of the form, each with its label and its values with their words."""
        words = Words(look.texts, self.resource)
        found = []
        for one in self.resource.filters:
            if one.kind == "id" or one is self.tabs:
                continue
            allowed = one.allowed or (("true", "false") if one.kind == "boolean" else ())
            values = [(value, words.tab(one.name, value)) for value in allowed]
            found.append((one, words.filter(one.name), values))
        return found

    async def _one(self, tx: Tx, actor: Actor, record_id: str) -> tuple[Record, Names]:
        record = await actions.read(tx, actor, self.resource, record_id)
        fields = self.resource.fields
        return record, await facts.names_of(tx, actor, [record], fields, self.parts.links)

    async def _going(
        self, tx: Tx, actor: Actor, record_id: str
    ) -> tuple[Record, list[tuple[str, str, int]]]:
        """Return a record and, of what its delete changes: how, the plural, and how many."""
        record = await actions.read(tx, actor, self.resource, record_id)
        going = []
        for cascade, count in await cascades.counted(tx, self.resource, actor.owner_id, record_id):
            target = facts.BY_TABLE.get(cascade.table)
            if count and target is not None:
                how = "removed" if isinstance(cascade, Remove) else "kept"
                going.append((how, target.plural, count))
        return record, going

    async def _shown(
        self, tx: Tx, actor: Actor, record_id: str
    ) -> tuple[Record, Names, Mapping[str, Any]]:
        record, names = await self._one(tx, actor, record_id)
        more = await self.parts.more(tx, actor, record) if self.parts.more is not None else {}
        return record, names, more

    def _form(
        self,
        request: web.Request,
        visitor: Visitor,
        record: Record | None,
        form_inputs: Sequence[Input],
        typed: Typed,
        refusal: Refusal | None = None,
    ) -> web.Response:
        faults: Mapping[str, str] = {}
        if refusal is not None:
            faults = inputs.faults(refusal.faults, form_inputs, typed)
        context: dict[str, Any] = {
            "section": self, "words": Words(request[READER].texts, self.resource),
            "record": record, "inputs": form_inputs, "typed": typed,
            "faults": faults, "spare": inputs.SPARE,
            "heading": self.heading(record) if record else "",
            "refusal": faults.get("", refusal.message if refusal and not faults else ""),
        }  # fmt: skip
        status = error_pages.status_of(refusal) if refusal else 200
        return templates.render(request, visitor, "record_form.html", context, status=status)
