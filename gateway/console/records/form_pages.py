"""The form of a resource: a new record, an edited one, and what a lost race leaves.

A form may be in sections, each of which is a form of its own on one page. It is one module because
each page shows what the others take.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from markupsafe import Markup

from gateway.console.layout import error_pages, pages, templates, wording
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.console.records import facts, reference_search, references, typed_values
from gateway.console.records.inputs import Input
from gateway.console.records.nouns import Words
from gateway.console.records.reference_search import Match
from gateway.console.records.resource_pages import ResourcePages
from gateway.console.records.typed_values import Picked, Typed
from gateway.domain.catalogue import BY_TABLE
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.record import Record, check
from gateway.server.app_keys import DB
from outbox.database.transaction import Tx
from outbox.ids import is_id

LONGEST = 200
"""Characters of a suggestion's text, and of a value in the address of an empty form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A form as it is shown: what was typed, what is wrong, and what the record had."""

    inputs: Sequence[Input]
    typed: Typed
    record: Record | None = None
    version: str = ""
    was: Mapping[str, str] = field(default_factory=dict)
    """By section of the form, a digest of each input as the record had it when it was made."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """How many rows an input has at least, where one was asked for."""
    refusal: Refusal | None = None
    unclear: Mapping[str, Sequence[Match]] = field(default_factory=dict)
    theirs: Mapping[str, Markup] = field(default_factory=dict)
    """The saved values of the inputs that somebody else changed meanwhile."""


async def new(
    section: ResourcePages, request: web.Request, visitor: SignedIn
) -> web.StreamResponse:
    """Show an empty form; a query parameter with the name of a field fills it in."""
    texts = request[READER].texts
    form_inputs = section.inputs(texts, creating=True)
    typed = typed_values.of_defaults(section.writable(creating=True), form_inputs, texts)
    for form_input in form_inputs:
        text = request.query.get(form_input.name, "")[:LONGEST].replace("\0", "")
        if not text:
            continue
        if form_input.kind in ("record", "records"):
            picked = await request.app[DB].read(
                _named, section, visitor.actor, form_input, text, request
            )
            typed[form_input.name] = picked if form_input.kind == "record" else [picked]
        elif form_input.kind in ("text", "long", "choice", "time"):
            typed[form_input.name] = text
    shown = _grouped(section, form_inputs, next(iter(section.parts.groups), ""))
    return _show(section, request, visitor, Filled(inputs=shown, typed=typed))


async def create(
    section: ResourcePages, request: web.Request, visitor: SignedIn, form: Form
) -> web.StreamResponse:
    """Create a record and show it."""
    assert section.entry.create is not None, "no form leads here"
    actor, texts = visitor.actor, request[READER].texts
    every = section.inputs(texts, creating=True)
    form_inputs = _grouped(section, every, _group_in(section, form))
    typed, unclear = await _resolved(section, request, actor, form_inputs, form)
    filled = Filled(inputs=form_inputs, typed=typed, unclear=unclear, rows=_rows(form_inputs, form))
    if unclear or filled.rows:
        return _show(section, request, visitor, filled)
    values = typed_values.values(typed, form_inputs, texts, creating=True, zone=actor.zone)
    draft = check(section.resource, values, from_json=True, creating=True)
    try:
        record = await request.app[DB].write(section.entry.create, actor, draft)
    except Refusal as refusal:
        filled = Filled(inputs=form_inputs, typed=typed, refusal=refusal)
        return _show(section, request, visitor, filled)
    return pages.to(f"{section.path}/{record.id}", section.done(texts, "created"))


async def edit_page(
    section: ResourcePages, request: web.Request, visitor: SignedIn
) -> web.StreamResponse:
    """Show the form with the values of a record."""
    actor, texts = visitor.actor, request[READER].texts
    record, names = await request.app[DB].read(section.one, actor, pages.id_of(request))
    form_inputs = section.inputs(texts, creating=False)
    typed = typed_values.of_record(record, form_inputs, texts, actor.zone, names)
    filled = Filled(
        inputs=form_inputs, typed=typed, record=record, version=record.etag,
        was=_was(section, form_inputs, typed),
    )  # fmt: skip
    return _show(section, request, visitor, filled)


async def edit(
    section: ResourcePages, request: web.Request, visitor: SignedIn, form: Form
) -> web.StreamResponse:
    """Save the changed inputs of a record, unless it has changed since the form was made.

    Then the form shows what was typed beside what was saved meanwhile, and can be saved again.
    """
    assert section.entry.change is not None, "no form leads here"
    actor, db, record_id = visitor.actor, request.app[DB], pages.id_of(request)
    record, names = await db.read(section.one, actor, record_id)
    texts, group = request[READER].texts, _group_in(section, form)
    every = section.inputs(texts, creating=False)
    form_inputs = _grouped(section, every, group)
    typed, unclear = await _resolved(section, request, actor, form_inputs, form)
    was, version = form.text("was"), form.text("version")
    saved = typed_values.of_record(record, every, texts, actor.zone, names)
    shown: dict[str, Any] = {
        "inputs": every, "record": record, "version": version, "typed": {**saved, **typed},
        "was": {**_was(section, every, saved), group: was},
    }  # fmt: skip
    if unclear or (rows := _rows(form_inputs, form)):
        rows = {} if unclear else rows
        return _show(section, request, visitor, Filled(unclear=unclear, rows=rows, **shown))
    changed = _changed(form_inputs, typed, was)
    if group and not _changed(form_inputs, saved, was):
        # Other sections may have been saved meanwhile; this one is as it was.
        version = record.etag
    values = typed_values.values(typed, changed, texts, creating=False, zone=actor.zone)
    draft = check(section.resource, values, from_json=True)
    try:
        await db.write(section.entry.change, actor, record.id, draft, frozenset({version}))
    except Refusal as refusal:
        if refusal.code == "precondition_failed":
            return await _raced(section, request, visitor, form_inputs, typed, was)
        return _show(section, request, visitor, Filled(refusal=refusal, **shown))
    if not group:
        return pages.to(f"{section.path}/{record.id}", "saved")
    return pages.to(f"{section.path}/{record.id}/edit?saved={group}#of-{group}")


async def suggest(
    section: ResourcePages, request: web.Request, visitor: SignedIn
) -> web.StreamResponse:
    """Return options for what is typed into an input of a record: the only query parameter."""
    text = next(iter(request.query.values()), "").strip()[:LONGEST].replace("\0", "")
    actor, matches = visitor.actor, list[Match]()
    if text:
        matches = await request.app[DB].scan(
            actor.owner_id, reference_search.matches, actor, section.resource, text
        )
    context = {"options": reference_search.options(matches)}
    return templates.render(request, visitor, "parts/record_options.html", context)


async def _raced(
    section: ResourcePages,
    request: web.Request,
    visitor: SignedIn,
    form_inputs: Sequence[Input],
    typed: Typed,
    was: str,
) -> web.Response:
    """Show what was typed beside what somebody else has saved; nothing of either is lost."""
    actor = visitor.actor
    record, names = await request.app[DB].read(section.one, actor, pages.id_of(request))
    every = section.inputs(request[READER].texts, creating=False)
    saved = typed_values.of_record(record, every, request[READER].texts, actor.zone, names)
    mine = {one.name for one in _changed(form_inputs, typed, was)}
    others = {one.name for one in _changed(form_inputs, saved, was)}
    look = section.look(request, names)
    theirs = {
        name: Markup(facts.cell_of(section.resource, name, look)(record)) or facts.NONE  # noqa: S704 - a cell escapes what it writes
        for name in mine & others
        if typed[name] != saved[name]
    }
    merged = {name: value if name in mine else saved[name] for name, value in typed.items()}
    filled = Filled(
        inputs=every, typed={**saved, **merged}, record=record, version=record.etag,
        was=_was(section, every, saved), theirs=theirs,
        refusal=Refusal("conflict", "error.changed"),
    )  # fmt: skip
    return _show(section, request, visitor, filled)


async def _resolved(
    section: ResourcePages,
    request: web.Request,
    actor: Actor,
    form_inputs: Sequence[Input],
    form: Form,
) -> tuple[Typed, Mapping[str, Sequence[Match]]]:
    """Return what was typed with the ids of the records that it names."""
    typed = typed_values.of_form(form, form_inputs)
    named = [one for one in form_inputs if one.kind in ("record", "records")]
    if not any(_unknown(typed[one.name]) for one in named):
        return typed, {}
    resolved = await request.app[DB].scan(
        actor.owner_id, reference_search.resolve, actor, section.resource, form_inputs, typed
    )
    return resolved.typed, resolved.unclear


def _unknown(value: Picked | list[Picked]) -> bool:
    each = value if isinstance(value, list) else [value]
    return any(one.text and not one.id for one in each)


async def _named(
    tx: Tx, section: ResourcePages, actor: Actor, form_input: Input, text: str, request: web.Request
) -> Picked:
    """Return a record that the address names by its id."""
    target = reference_search.target_of(section.resource, form_input, request.query)
    if target is None or not is_id(text):
        return Picked(text)
    names = await references.named(tx, actor, target, [text.lower()])
    return Picked(names.get(text.lower(), text), text.lower())


def _digests(form_inputs: Sequence[Input], typed: Typed) -> list[str]:
    return [f"{zlib.crc32(repr(_plain(typed[one.name])).encode()):08x}" for one in form_inputs]


def _was(section: ResourcePages, form_inputs: Sequence[Input], typed: Typed) -> Mapping[str, str]:
    """Return the digests of the inputs by section of the form, under "" where it has none."""
    return {
        group: " ".join(_digests(_grouped(section, form_inputs, group), typed))
        for group in section.parts.groups or ("",)
    }


def _grouped(section: ResourcePages, form_inputs: Sequence[Input], group: str) -> list[Input]:
    """Return the inputs of a section of the form in its order; all without one."""
    if not group:
        return list(form_inputs)
    order = {name: place for place, name in enumerate(section.parts.groups[group])}
    mine = [one for one in form_inputs if section.group_of(one.name) == group]
    return sorted(mine, key=lambda one: order.get(one.name, len(order)))


def _group_in(section: ResourcePages, form: Form) -> str:
    """Return the section that a form sends; empty for all of it."""
    group = form.text("section")
    return group if group in section.parts.groups else ""


def _rows(form_inputs: Sequence[Input], form: Form) -> dict[str, int]:
    """Return the rows of the input for which another row is asked."""
    more = form.text("more")
    return {
        one.name: typed_values.rows_sent(form, one) + 1
        for one in form_inputs
        if one.kind == "rows" and one.name == more
    }


def _plain(value: Any) -> Any:
    """Return what decides whether an input has changed: of a record its id."""
    if isinstance(value, Picked):
        return value.id or value.text
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value


def _changed(form_inputs: Sequence[Input], typed: Typed, was: str) -> list[Input]:
    """Return the inputs that differ from what the form was made with; all when it is unknown."""
    before = was.split()
    if len(before) != len(form_inputs):
        return list(form_inputs)
    now = _digests(form_inputs, typed)
    return [one for one, old, new in zip(form_inputs, before, now, strict=True) if old != new]


async def again(
    section: ResourcePages,
    request: web.Request,
    visitor: SignedIn,
    form: Form,
    typed: Typed,
    more: Mapping[str, Any],
) -> web.Response:
    """Show the form once more as it was typed, with something that was asked for beside it."""
    record_id = request.match_info.get("id")
    record = None
    if record_id is not None:
        record, _ = await request.app[DB].read(section.one, visitor.actor, pages.id_of(request))
    form_inputs = section.inputs(request[READER].texts, creating=record is None)
    filled = Filled(
        inputs=form_inputs, typed=typed, record=record,
        version=form.text("version"), was={"": form.text("was")},
    )  # fmt: skip
    return _show(section, request, visitor, filled, more)


def _show(
    section: ResourcePages,
    request: web.Request,
    visitor: SignedIn,
    filled: Filled,
    more: Mapping[str, Any] | None = None,
) -> web.Response:
    texts, refusal = request[READER].texts, filled.refusal
    faults: dict[str, str] = {}
    message = ""
    if refusal is not None:
        faults = typed_values.faults(texts, refusal.faults, filled.inputs, filled.typed)
        message = "" if faults else wording.refused(texts, refusal)
    for name, matches in filled.unclear.items():
        faults[name] = texts("records.unclear" if matches else "records.nobody")
    shown = filled.inputs
    groups = [
        (group, grouped)
        for group in section.parts.groups
        if (grouped := _grouped(section, shown, group))
    ] or [("", list(shown))]
    context: dict[str, Any] = {
        "section": section, "words": Words(texts, section.resource), "record": filled.record,
        "groups": groups, "typed": filled.typed, "faults": faults, "spare": typed_values.SPARE,
        "rows": filled.rows, "saved": request.query.get("saved", ""),
        "faulty": {section.group_of(name.partition("[")[0]) for name in faults if name},
        "version": filled.version, "was": filled.was, "unclear": filled.unclear,
        "theirs": filled.theirs, "plural_of": _plural_of,
        "heading": section.heading(filled.record) if filled.record else "",
        "refusal": faults.get("", message),
        "parts": section.parts, **(more or {}),
    }  # fmt: skip
    status = error_pages.status_of(refusal) if refusal else 400 if filled.unclear else 200
    return templates.render(request, visitor, "record_form.html", context, status=status)


def _plural_of(table: str) -> str:
    target = BY_TABLE.get(table)
    return target.plural if target is not None else ""
