"""Reads what was typed into the inputs of a form, and shows values as they would be typed.

What was typed is kept as text, so that a refused form shows it again: a text by input, true or
false for a box, the list of the ticked options, and a list of the same for rows.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from msgspec import json

from gateway.console.layout import typed_numbers, wording
from gateway.console.layout.guard import Form
from gateway.console.records.inputs import Input
from gateway.records.errors import Fault
from gateway.records.record import Record
from gateway.records.resource import Field
from gateway.records.values import dates
from gateway.records.values.masks import masked
from gateway.records.values.strictjson import InvalidJson, decode
from gateway.texts import Texts
from outbox.ids import is_id

Typed = Mapping[str, Any]
SPARE = 1
"""Empty rows after the filled ones; the form adds more."""
MARKED = re.compile(r" · ([0-9a-f]{24})$", re.ASCII)
"""The end of a suggestion whose name others have too."""


class Picked(NamedTuple):
    """What was typed into an input of a record: a name or an id, and the id that it stands for."""

    text: str = ""
    id: str = ""


def of_record(
    record: Record, inputs: Sequence[Input], texts: Texts, zone: str, names: Mapping[str, str]
) -> Typed:
    """Return the values of a record as they would be typed; `names` are those it refers to."""
    typed: dict[str, Any] = {}
    for form_input in inputs:
        value = record.shown(form_input.name)
        if form_input.kind == "time":
            typed[form_input.name] = _local(record, form_input, zone)
        elif form_input.kind == "record":
            typed[form_input.name] = Picked(names.get(value, value), value) if value else Picked()
        elif form_input.kind == "records":
            typed[form_input.name] = [Picked(names.get(each, each), each) for each in value or ()]
        else:
            typed[form_input.name] = _text(form_input, value, texts)
    return typed


def of_defaults(fields: Sequence[Field], inputs: Sequence[Input], texts: Texts) -> dict[str, Any]:
    """Return the default values as they would be typed."""
    typed: dict[str, Any] = {}
    for field, form_input in zip(fields, inputs, strict=True):
        show, value = field.format.show, field.default
        if form_input.kind == "record":
            typed[form_input.name] = Picked()
        elif form_input.kind == "records":
            typed[form_input.name] = []
        else:
            shown = show(value) if show and value is not None else value
            typed[form_input.name] = _text(form_input, shown, texts)
    return typed


def of_form(form: Form, inputs: Sequence[Input], prefix: str = "") -> dict[str, Any]:
    """Return what was typed into the inputs, without empty rows."""
    typed: dict[str, Any] = {}
    for form_input in inputs:
        name = prefix + form_input.name
        if form_input.kind == "box":
            typed[form_input.name] = bool(form.all(name))
        elif form_input.kind == "rows":
            typed[form_input.name] = _rows(form, form_input, name)
        elif form_input.kind == "several":
            typed[form_input.name] = list(form.all(name))
        elif form_input.kind == "record":
            typed[form_input.name] = picked(form, name)
        elif form_input.kind == "records":
            typed[form_input.name] = several_picked(form, name)
        elif form_input.kind == "time":
            day, time = form.text(name).strip(), form.text(f"{name}.time").strip()
            typed[form_input.name] = f"{day}T{time}" if time else day
        else:
            typed[form_input.name] = form.text(name).replace("\r\n", "\n").strip()
    return typed


def values(
    typed: Typed, inputs: Sequence[Input], texts: Texts, *, creating: bool, zone: str = "UTC"
) -> dict[str, Any]:
    """Return what was typed in the JSON form of the fields; what is empty is null or left out.

    Numbers are in the form of the language of `texts`, times in the time zone `zone`, and the
    records are resolved already.
    """
    values: dict[str, Any] = {}
    value: Any
    for form_input in inputs:
        if form_input.kind == "time":
            value = instant(typed[form_input.name], zone, bare=bool(form_input.day))
        elif form_input.kind == "record":
            value = typed[form_input.name].id or typed[form_input.name].text or None
        elif form_input.kind == "records":
            value = [picked.id or picked.text for picked in typed[form_input.name]] or None
        else:
            value = _value(form_input, typed[form_input.name], texts)
        if value is not None or (form_input.required and not creating):
            values[form_input.name] = "" if value is None else value
        elif not creating:
            values[form_input.name] = None
    return values


def faults(
    texts: Texts, faults: Sequence[Fault], inputs: Sequence[Input], typed: Typed
) -> dict[str, str]:
    """Return the messages by the name of the input; those of no input are under ""."""
    names = [form_input.name for form_input in inputs]
    for form_input in inputs:
        if form_input.kind == "records":
            names += [f"{form_input.name}[{row}]" for row in range(len(typed[form_input.name]))]
        if form_input.kind == "rows":
            rows = range(len(typed[form_input.name]))
            names += [
                f"{form_input.name}[{row}].{column.name}"
                for row in rows
                for column in form_input.columns
            ]
    placed: dict[str, list[Fault]] = {}
    for fault in faults:
        places = [name for name in names if f"{fault.field}[".startswith((f"{name}[", f"{name}."))]
        placed.setdefault(max(places, key=len, default=""), []).append(fault)
    return {name: wording.together(texts, some) for name, some in placed.items()}


def _text(form_input: Input, value: Any, texts: Texts) -> Any:
    if form_input.kind == "box":
        return bool(value)
    if form_input.kind == "rows":
        return [
            {c.name: _text(c, row.get(c.name), texts) for c in form_input.columns}
            for row in value or ()
        ]
    if form_input.kind == "several":
        return list(value or ())
    if value is None:
        return ""
    if form_input.kind == "lines":
        return "\n".join(value)
    if form_input.kind == "json":
        return json.format(json.encode(value)).decode()
    if form_input.kind in ("number", "money"):
        return typed_numbers.written(value, texts, 2 if form_input.kind == "money" else None)
    return masked(form_input.name, str(value))


def rows_sent(form: Form, form_input: Input) -> int:
    """Return the number of rows of an input in a form, also empty ones."""
    columns = [column for column in form_input.columns if column.kind != "box"]
    place = 0
    while any(form.all(f"{form_input.name}[{place}].{column.name}") for column in columns):
        place += 1
    return place


def _rows(form: Form, form_input: Input, name: str) -> list[dict[str, Any]]:
    rows = []
    columns = [column for column in form_input.columns if column.kind != "box"]
    # A box that is not ticked is not sent, but every row has a text.
    for place in range(rows_sent(form, form_input)):
        row = of_form(form, form_input.columns, f"{name}[{place}].")
        # A choice is never empty.
        if any(row[column.name] for column in columns if column.kind != "choice"):
            rows.append(row)
    return rows


def _value(form_input: Input, text: Any, texts: Texts) -> Any:
    if form_input.kind in ("box", "several"):
        return text
    if form_input.kind == "rows":
        return [values(row, form_input.columns, texts, creating=True) for row in text]
    if form_input.kind == "lines":
        return [line for line in map(str.strip, text.splitlines()) if line] or None
    if not text:
        return None
    if form_input.kind == "json":
        return _object(text)
    return typed_numbers.number(text, texts) if form_input.kind in ("number", "money") else text


def _object(text: str) -> Any:
    """Return the JSON value of a text; another text stays one, which the declaration refuses."""
    try:
        return decode(text.encode(errors="replace"))
    except InvalidJson:
        return text


def _local(record: Record, form_input: Input, zone: str) -> str:
    micros = record[record.resource.named[form_input.name].column]
    if micros is None:
        return ""
    return local(micros, zone, bare=bool(form_input.day and record[form_input.day]))


def local(micros: int, zone: str, *, bare: bool) -> str:
    """Return a time as it would be typed; a `bare` date, which is stored as 00:00 UTC, as one."""
    there = dates.local(micros, "UTC" if bare else zone).replace(tzinfo=None)
    if bare:
        return there.date().isoformat()
    if there.microsecond:
        return there.isoformat(timespec="milliseconds")
    return there.isoformat(timespec="seconds" if there.second else "minutes")


def instant(text: str, zone: str, *, bare: bool) -> str | None:
    """Return a typed time in ISO 8601; what is none stays as it is, and the declaration refuses it.

    A date alone stays one where a bare date can be kept, and else is its first moment.
    """
    if not text or (bare and len(text) == dates.DAY_LENGTH):
        return text or None
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=ZoneInfo(zone))
        return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError):
        return text


def picked(form: Form, name: str) -> Picked:
    """Return what was typed for a record: the match that was chosen, else the text.

    The id stands for the text only while the text is the one that was shown with it.
    """
    text, pick = form.text(name).strip(), form.text(f"{name}.pick").lower()
    known, shown = form.text(f"{name}.is").lower(), form.text(f"{name}.as")
    if is_id(pick):
        return Picked(text or pick, pick)
    marked = MARKED.search(text)
    if marked is not None:
        return Picked(text, marked[1])
    if is_id(text):
        return Picked(text, text.lower())
    return Picked(text, known if text and text == shown and is_id(known) else "")


def several_picked(form: Form, name: str) -> list[Picked]:
    """Return what was typed into a list of such inputs, without empty ones."""
    all_picked, place = [], 0
    while form.all(f"{name}[{place}]"):
        record = picked(form, f"{name}[{place}]")
        if record.text:
            all_picked.append(record)
        place += 1
    return all_picked
