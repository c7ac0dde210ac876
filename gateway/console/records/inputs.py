"""Makes the inputs of a form from a declaration, and reads what was typed into them.

What was typed is kept as text, so that a refused form shows it again: a text by input, true or
false for a box, the list of the ticked options, and a list of the same for rows.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from gateway.console.frame.forms import Form
from gateway.console.records.words import label_of
from gateway.records.errors import Fault
from gateway.records.record import Record
from gateway.records.resource import Field
from gateway.texts import Texts

Kind = Literal["text", "long", "number", "money", "choice", "several", "box", "lines", "rows"]
Typed = Mapping[str, Any]
SPARE = 2
"""Empty rows after the filled ones."""
LINE = 2_048
"""A text that may be longer has several lines."""
CENT = 0.01
GROUPED = re.compile(r"-?[0-9]{1,3}(\.[0-9]{3})+,[0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Input:
    """One input. `columns` are the inputs of each row."""

    name: str
    label: str
    hint: str
    kind: Kind
    required: bool
    options: Sequence[str] = ()
    longest: int | None = None
    most: int | None = None
    columns: Sequence["Input"] = ()


def inputs(texts: Texts, fields: Sequence[Field]) -> list[Input]:
    """Return the inputs of fields."""
    return [
        _input(
            texts,
            field.name,
            field.format.schema,
            field.description,
            field.required or not field.nullable,
        )
        for field in fields
    ]


def kind_of(schema: Mapping[str, Any]) -> Kind:
    """Return the kind of the input for values of a JSON Schema."""
    schema = plain(schema)
    if "enum" in schema:
        return "choice"
    match schema.get("type"):
        case "boolean":
            return "box"
        case "array":
            if "enum" in schema["items"]:
                return "several"
            return "rows" if schema["items"].get("type") == "object" else "lines"
        case "number" | "integer":
            return "money" if schema.get("multipleOf") == CENT else "number"
    return "long" if schema.get("maxLength", 0) > LINE else "text"


def plain(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema without the null that it allows."""
    if isinstance(schema.get("type"), list):
        return {**schema, "type": schema["type"][0]}
    only: Mapping[str, Any] = schema["anyOf"][0] if "anyOf" in schema else schema
    return only


def of_record(record: Record, inputs: Sequence[Input]) -> Typed:
    """Return the values of a record as they would be typed."""
    return {one.name: _text(one, record.shown(one.name)) for one in inputs}


def of_defaults(fields: Sequence[Field], inputs: Sequence[Input]) -> Typed:
    """Return the default values as they would be typed."""
    typed = {}
    for field, one in zip(fields, inputs, strict=True):
        show, value = field.format.show, field.default
        typed[one.name] = _text(one, show(value) if show and value is not None else value)
    return typed


def of_form(form: Form, inputs: Sequence[Input], prefix: str = "") -> dict[str, Any]:
    """Return what was typed into the inputs, without empty rows."""
    typed: dict[str, Any] = {}
    for one in inputs:
        name = prefix + one.name
        if one.kind == "box":
            typed[one.name] = bool(form.all(name))
        elif one.kind == "rows":
            typed[one.name] = _rows(form, one, name)
        elif one.kind == "several":
            typed[one.name] = list(form.all(name))
        else:
            typed[one.name] = form.text(name).replace("\r\n", "\n").strip()
    return typed


def values(typed: Typed, inputs: Sequence[Input], *, creating: bool) -> dict[str, Any]:
    """Return what was typed in the JSON form of the fields; what is empty is null or left out."""
    values: dict[str, Any] = {}
    for one in inputs:
        value = _value(one, typed[one.name])
        if value is not None or (one.required and not creating):
            values[one.name] = "" if value is None else value
        elif not creating:
            values[one.name] = None
    return values


def faults(faults: Sequence[Fault], inputs: Sequence[Input], typed: Typed) -> dict[str, str]:
    """Return the messages by the name of the input; those of no input are under ""."""
    names = [one.name for one in inputs]
    for one in inputs:
        if one.kind == "rows":
            rows = range(len(typed[one.name]))
            names += [f"{one.name}[{row}].{column.name}" for row in rows for column in one.columns]
    messages: dict[str, list[str]] = {}
    for fault in faults:
        places = [name for name in names if f"{fault.field}[".startswith((f"{name}[", f"{name}."))]
        messages.setdefault(max(places, key=len, default=""), []).append(fault.message)
    return {name: " ".join(dict.fromkeys(texts)) for name, texts in messages.items()}


def _input(texts: Texts, name: str, schema: Mapping[str, Any], hint: str, required: bool) -> Input:
    schema = plain(schema)
    kind = kind_of(schema)
    columns: Sequence[Input] = ()
    if kind == "rows":
        item = schema["items"]
        columns = [
            _input(texts, member, inner, inner.get("description", ""), member in item["required"])
            for member, inner in item["properties"].items()
        ]
    options = schema["items"]["enum"] if kind == "several" else schema.get("enum", ())
    return Input(
        name, label_of(texts, name), hint.replace("`", ""), kind, required, options,
        schema.get("maxLength"), schema.get("maxItems"), columns,
    )  # fmt: skip


def _text(one: Input, value: Any) -> Any:
    if one.kind == "box":
        return bool(value)
    if one.kind == "rows":
        return [{c.name: _text(c, row.get(c.name)) for c in one.columns} for row in value or ()]
    if one.kind == "several":
        return list(value or ())
    if value is None:
        return ""
    if one.kind == "lines":
        return "\n".join(value)
    return f"{value:.2f}".replace(".", ",") if one.kind == "money" else str(value)


def _rows(form: Form, one: Input, name: str) -> list[dict[str, Any]]:
    rows = []
    columns = [column for column in one.columns if column.kind != "box"]
    place = 0
    # A box that is not ticked is not sent, but every row has a text.
    while any(form.all(f"{name}[{place}].{column.name}") for column in columns):
        row = of_form(form, one.columns, f"{name}[{place}].")
        # A choice is never empty.
        if any(row[column.name] for column in columns if column.kind != "choice"):
            rows.append(row)
        place += 1
    return rows


def _value(one: Input, text: Any) -> Any:
    if one.kind in ("box", "several"):
        return text
    if one.kind == "rows":
        return [values(row, one.columns, creating=True) for row in text]
    if one.kind == "lines":
        return [line for line in map(str.strip, text.splitlines()) if line] or None
    if not text:
        return None
    return number_of(text) if one.kind in ("number", "money") else text


def number_of(text: str) -> Any:
    """Return the number of a text with a point or a comma; another text stays one.

    Before a comma, points group thousands: `1.234,56`.
    """
    if GROUPED.fullmatch(text):
        text = text.replace(".", "")
    try:
        number = Decimal(text.replace(",", "."))
    except InvalidOperation:
        return text
    if not number.is_finite() or len(text) > 40:
        return text
    return int(number) if number == number.to_integral_value() else number
