"""The pages of a kind of records, made from its declaration: list, show, create, edit."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiohttp import web

from gateway.console.frame import (
    error_pages,
    inputs,
    pages,
    polling,
    record_fields,
    templates,
    wording,
)
from gateway.console.frame.forms import Form
from gateway.console.frame.guard import Visitor
from gateway.console.frame.inputs import Input, Typed
from gateway.console.frame.reader import READER
from gateway.console.frame.record_fields import Names
from gateway.domain.catalogue import Entry
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.draft import check
from gateway.records.errors import Refusal
from gateway.records.query import Place, Query, costly
from gateway.records.record import Record
from gateway.records.resource import Field, Resource
from gateway.records.values.format import of_json
from gateway.server.app_keys import DB
from gateway.texts import Texts
from outbox.database.transaction import Database, Tx

LIMIT = 25
LONGEST_SEARCH = 200
CURSOR = re.compile("([0-9]{1,18})-([0-9a-f]{24})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of a list: the records with their columns, and the cursor of the next page."""

    rows: Sequence[tuple[Record, Sequence[record_fields.Fact]]]
    total: int
    after: str


class Section:
    """The pages of one kind of records.

    `columns` are the fields of the list, the first of which links to the record. `choice` is the
    filter that the list offers. The form has the fields `last` after all others.
    """

    def __init__(
        self, entry: Entry, columns: Sequence[str], choice: str, last: Sequence[str] = ()
    ) -> None:
        self.entry = entry
        self.resource: Resource = entry.resource
        self.columns = columns
        self.choice = self.resource.offered[choice]
        self.choices = self.choice.allowed or ("true", "false")
        self.name = self.resource.plural
        self.path = f"/console/{self.name}"
        self.last = last

    async def index(self, request: web.Request, visitor: Visitor) -> web.StreamResponse:
        """Show a page of the list; query parameters of the filter, `search` and `after`."""
        choice = request.query.get(self.choice.name, "")
        only = choice if choice in self.choices else ""
        search = request.query.get("search", "").strip()[:LONGEST_SEARCH].replace("\0", "")
        after = request.query.get("after", "")
        query = Query(limit=LIMIT, search=search if self.resource.search else "")
        if only:
            value = only == "true" if self.choice.kind == "boolean" else only
            query.filters = {self.choice.name: value}
        scope = self.scope(request)
        query.filters = {**query.filters, **scope}
        scoped = {name: _word(value) for name, value in scope.items()}
        if match := CURSOR.fullmatch(after):
            query.after = Place(int(match[1]), match[2])
        texts = request[READER].texts
        page = await self._listed(request.app[DB], visitor.actor, query, texts)
        context = {
            "section": self, "page": page, "only": only, "search": query.search,
            "after": query.after is not None, "label_of": partial(inputs.label_of, texts),
            "scope": "".join(f"{name}={text}&" for name, text in scoped.items()), "scoped": scoped,
            "here": request.query.get("after", "") if query.after is not None else "",
            "selecting": "select" in request.query and bool(page.rows),
        }  # fmt: skip
        return polling.live(
            request, visitor, f"{self.name}.html", "parts/record_rows.html", context
        )

    def scope(self, request: web.Request) -> Mapping[str, Any]:
        """Return further filters of the request's list, which its links keep: words and ids."""
        return {}

    async def show(self, request: web.Request, visitor: Visitor) -> web.StreamResponse:
        """Show a record."""
        record, names = await request.app[DB].read(self._one, visitor.actor, pages.id_of(request))
        texts = request[READER].texts
        context = {
            "section": self, "record": record,
            "facts": record_fields.facts(texts, record, names),
            "heading": self.heading(texts, record, names),
        }  # fmt: skip
        return templates.render(request, visitor, f"{self.resource.noun}.html", context)

    async def new(self, request: web.Request, visitor: Visitor) -> web.StreamResponse:
        """Show an empty form."""
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
        return pages.to(f"{self.path}/{record.id}", f"{self.resource.noun}_created")

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

    def heading(self, texts: Texts, record: Record, names: Names) -> str:
        """Return the text that names a record: its first column."""
        value = record_fields.fact(texts, record, self.columns[0], names).value
        return str(value[1] if isinstance(value, tuple) else value)

    def _writable(self, *, creating: bool) -> list[Field]:
        fields = [f for f in self.resource.fields if (f.on_create if creating else f.on_update)]
        return sorted(fields, key=lambda field: field.name in self.last)

    async def _listed(self, db: Database, actor: Actor, query: Query, texts: Texts) -> Listed:
        """Read a page of the list; one that looks at many records takes its turn."""
        if costly(self.resource, query) is None:
            return await db.read(self._page, actor, query, texts)
        return await db.scan(actor.owner_id, self._page, actor, query, texts)

    async def _page(self, tx: Tx, actor: Actor, query: Query, texts: Texts) -> Listed:
        page = await actions.page(tx, actor, self.resource, query)
        named = self.resource.named
        references = [named[name] for name in self.columns if name in named]
        names = await record_fields.names_of(tx, actor, page.records, references)
        rows = [
            (record, [record_fields.fact(texts, record, name, names) for name in self.columns])
            for record in page.records
        ]
        onward = page.onward
        after = "" if onward is None else f"{onward.at}-{onward.record_id}"
        return Listed(rows, page.total, after)

    async def _one(self, tx: Tx, actor: Actor, record_id: str) -> tuple[Record, Names]:
        record = await actions.read(tx, actor, self.resource, record_id)
        return record, await record_fields.names_of(tx, actor, [record], self.resource.fields)

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
        message = ""
        if refusal is not None:
            texts = request[READER].texts
            faults = inputs.faults(texts, refusal.faults, form_inputs, typed)
            message = "" if faults else wording.refused(texts, refusal)
        context: dict[str, Any] = {
            "section": self, "record": record, "inputs": form_inputs, "typed": typed,
            "faults": faults, "spare": inputs.SPARE,
            "heading": self.heading(request[READER].texts, record, {}) if record else "",
            "refusal": faults.get("", message),
        }  # fmt: skip
        status = error_pages.status_of(refusal) if refusal else 200
        return templates.render(request, visitor, "record_form.html", context, status=status)


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
