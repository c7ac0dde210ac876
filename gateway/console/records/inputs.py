"""Makes the inputs of a form from the declaration of its fields.

A hint that says what the label says is left out: `Name of the store.` at `Name`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from gateway.console.layout import wording
from gateway.console.records.nouns import label_of
from gateway.records.resource import Field
from gateway.records.values.folding import fold
from gateway.texts import Texts

Kind = Literal[
    "text", "long", "number", "money", "choice", "several", "box", "lines", "rows", "time", "json",
    "record", "records",
]  # fmt: skip
LINE = 2_048
"""A text that may be longer has several lines."""
CENT = 0.01
PERCENT = 100
WORD = re.compile(r"[^\W_]+")
SMALL = frozenset({
    "a", "an", "the", "of", "its", "it", "is", "for", "in", "and", "this", "that",
    "o", "os", "as", "um", "uma", "do", "da", "dos", "das", "de", "em", "no", "na", "e", "se",
    "seu", "sua", "este", "esta", "para",
})  # fmt: skip
"""Words that say nothing by themselves, folded."""


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
    to: str = ""
    """The table of the records whose ids it takes."""
    by: str = ""
    """The input that says which table instead."""
    day: str = ""
    """The column that says that a stored time is a bare date."""
    decimal: bool = False
    """Whether a number can have decimals."""


def inputs(texts: Texts, fields: Sequence[Field]) -> list[Input]:
    """Return the inputs of fields."""
    return [_of_field(texts, field) for field in fields]


@cache
def _of_field(texts: Texts, field: Field) -> Input:
    hint, required = wording.hint_of(texts, field), field.required or not field.nullable
    field_input = _input(
        texts, field.name, field.format.schema, hint, required, wording.noun_of(field)
    )
    if field.reference is not None:
        kind: Kind = "records" if field.listed_in else "record"
        return replace(field_input, kind=kind, to=field.reference.table, by=field.reference.by)
    day = next((beside.column for beside in field.beside if beside.part), "")
    return replace(field_input, day=day)


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
        case "object":
            return "json"
        case "number" | "integer":
            # A percentage has two decimals, too.
            percent = schema.get("maximum") == PERCENT
            return "money" if schema.get("multipleOf") == CENT and not percent else "number"
    if schema.get("format") == "date-time":
        return "time"
    return "long" if schema.get("maxLength", 0) > LINE else "text"


def plain(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema without the null that it allows."""
    if isinstance(schema.get("type"), list):
        return {**schema, "type": schema["type"][0]}
    only: Mapping[str, Any] = schema["anyOf"][0] if "anyOf" in schema else schema
    return only


def _input(
    texts: Texts, name: str, schema: Mapping[str, Any], hint: str, required: bool, noun: str = ""
) -> Input:
    schema, label = plain(schema), label_of(texts, name, noun)
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
        name=name,
        label=label,
        hint=_useful(texts, label, hint.replace("`", "")),
        kind=kind,
        required=required,
        options=options,
        longest=schema.get("maxLength"),
        most=schema.get("maxItems"),
        columns=columns,
        decimal=schema.get("type") == "number",
    )


def _useful(texts: Texts, label: str, hint: str) -> str:
    """Return the hint, or an empty text when it has no word but the label's and the record's."""
    return hint if _words(hint) - SMALL - _nouns(texts) - _words(label) else ""


@cache
def _nouns(texts: Texts) -> frozenset[str]:
    """Return the words for records in a language."""
    keys = [key for key in texts if key.startswith("noun.")]
    return frozenset().union(*(_words(texts(key)) for key in keys))


def _words(text: str) -> frozenset[str]:
    return frozenset(WORD.findall(fold(text)))
