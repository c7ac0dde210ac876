"""Writes the values of records as HTML, as the declaration of each field says.

A page makes a cell for each of its columns once, and calls it for each record.
"""

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from babel.dates import format_date
from markupsafe import Markup, escape
from msgspec import Raw, json

from gateway.console.layout.display import inert, word_of
from gateway.console.records.inputs import kind_of, plain
from gateway.console.records.nouns import label_of
from gateway.console.records.references import Names, ids_in, target_of
from gateway.records.record import Record
from gateway.records.resource import Field, Resource
from gateway.records.values import dates
from gateway.records.values.masks import MASKS, masked
from gateway.records.values.schemas import INSTANT
from gateway.texts import Texts

TIMES = {"createdAt": "created_at", "updatedAt": "updated_at"}
NONE = Markup('<span class="faint unset">–</span>')
NARROW = 18
"""Characters that every column of a table shows."""
PROSE = ("notes", "reason", "lostReason", "text")
Cell = Callable[[Record], str]
"""Returns HTML, or an empty text when the field is unset."""
UNTIL_DONE = {"tasks": ("completed", False), "invoices": ("status", "pending")}
"""The column, by table, whose value says that something is still due."""
OVERDUE_FIELD = "dueDate"


@dataclass(frozen=True, slots=True)
class CellStyle:
    """How a page shows values: the language, its times, and the names of other records."""

    texts: Texts
    when: Callable[[int], str]
    names: Names
    links: Mapping[str, str]
    """See Parts.links."""
    at: dates.Moment
    """The time at which it shows them, for its owner."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A value with its label: HTML, or the cells of a table below `columns`, or pairs of them."""

    name: str
    label: str
    kind: Literal["plain", "prose", "pairs", "table"]
    value: Any
    columns: Sequence[str] = ()
    numeric: Sequence[bool] = ()
    """Which columns are amounts and other numbers."""


def marks_overdue(resource: Resource, name: str) -> bool:
    """Return whether a field of a resource is marked when its time has passed."""
    return name == OVERDUE_FIELD and resource.table in UNTIL_DONE


def is_overdue(record: Record, at: dates.Moment) -> bool:
    """Return whether a task or an invoice is open after its due date."""
    column, value = UNTIL_DONE[record.resource.table]
    due: Any = record["due_at"]
    if due is None or record[column] != value:
        return False
    return at.has_passed(due, bool(record["due_day"]))


def overdue_badge(texts: Texts) -> str:
    """Return the mark, as a word."""
    return f'<span class="badge is-overdue">{escape(texts("overdue"))}</span>'


def cell_of(resource: Resource, name: str, look: CellStyle) -> Cell:
    """Return the function that writes one field of a record as HTML."""
    if name in TIMES:
        column = TIMES[name]
        return lambda record: _time(look, record[column])
    if name == "id":
        return lambda record: f"<code>{record.id}</code>"
    field = resource.named.get(name)
    if field is None:
        return lambda record: _derived(look, record.shown(name))
    if field.reference is not None or name in look.links:
        return lambda record: _reference(look, record, field)
    schema = field.format.shown or field.format.schema
    position = resource.position[field.column]
    if schema is INSTANT:
        day = next((one.column for one in field.beside if one.part), "")
        if marks_overdue(resource, name):
            return lambda record: _due(look, record, field.column, day)
        return lambda record: _moment(look, record, field.column, day)
    if name == "status":
        return lambda record: badge(look.texts, record["status"], record.resource.noun)
    schema = plain(schema)
    kind = kind_of(schema)
    if kind == "text" and field.format.show is None and name not in resource.derived_at:
        if name in MASKS:
            return lambda record: _text(masked(name, record.row[position]))
        return lambda record: _text(record.row[position])
    if name == "stars":
        return lambda record: _stars(look.texts, record.row[position])
    write = _writer(look.texts, kind)
    if write is not None and name not in resource.derived_at:
        show = field.format.show
        return lambda record: _written(write, show, record.row[position])
    return lambda record: _value(look.texts, schema, record.shown(name))


def facts(
    resource: Resource, record: Record, look: CellStyle, left_out: Iterable[str]
) -> list[Fact]:
    """Return what to show of a whole record, without what is unset."""
    without = set(left_out)
    derived = [one.name for one in resource.derived if one.name not in resource.named]
    shown_facts = []
    for name in (*resource.named, *TIMES, *derived, "id"):
        if name in without:
            continue
        label = "Id" if name == "id" else label_of(look.texts, name, resource.noun)
        field = resource.named.get(name)
        schema = plain(field.format.shown or field.format.schema) if field is not None else {}
        if field is not None and field.reference is None:
            shown = record.shown(name)
            if kind_of(schema) == "rows":
                if shown:
                    shown_facts.append(_table(look.texts, name, label, schema["items"], shown))
                continue
            if schema.get("type") == "object" and "properties" in schema:
                if shown:
                    pairs = _pairs(look.texts, schema["properties"], shown)
                    shown_facts.append(Fact(name, label, "pairs", pairs))
                continue
        text = cell_of(resource, name, look)(record)
        if text:
            kind: Literal["plain", "prose"] = "prose" if name in PROSE else "plain"
            shown_facts.append(Fact(name, label, kind, Markup(text)))  # noqa: S704 - escaped
    return shown_facts


@lru_cache(maxsize=500)
def badge(texts: Texts, state: str, noun: str = "") -> str:
    """Return a state as a badge."""
    return f'<span class="badge is-{escape(state)}">{escape(word_of(texts, state, noun))}</span>'


@lru_cache(maxsize=5_000)
def day_of(texts: Texts, micros: int) -> str:
    """Return a day, which is stored as its 00:00 UTC."""
    return str(format_date(dates.local(micros, "UTC"), "medium", locale=texts.locale))


def _text(value: Any) -> str:
    # html.escape is a few replacements in C; the one of markupsafe makes an object of each text.
    return "" if value is None else f"<bdi>{html.escape(inert(str(value)))}</bdi>"


def _time(look: CellStyle, micros: int | None) -> str:
    return "" if micros is None else look.when(micros)


def _moment(look: CellStyle, record: Record, column: str, day: str) -> str:
    micros = record[column]
    if micros is None or not day or not record[day]:
        return _time(look, micros)
    shown = dates.local(micros, "UTC").date().isoformat()
    return f'<span class="day" data-day="{shown}">{escape(day_of(look.texts, micros))}</span>'


def _due(look: CellStyle, record: Record, column: str, day: str) -> str:
    shown = _moment(look, record, column, day)
    return f"{shown} {overdue_badge(look.texts)}" if is_overdue(record, look.at) else shown


def _reference(look: CellStyle, record: Record, field: Field) -> str:
    target = target_of(record, field, look.links)
    links = []
    for record_id in ids_in(record, field):
        shown = look.names.get(record_id)
        if target is None or shown is None:
            links.append(f"<code>{html.escape(record_id)}</code>")
        else:
            name = html.escape(inert(shown) or record_id)
            whole = f' title="{name}"' if len(name) > NARROW else ""
            links.append(
                f'<a href="/console/{target.plural}/{record_id}"{whole}><bdi>{name}</bdi></a>'
            )
    return ", ".join(links)


def _derived(look: CellStyle, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return _yes(look.texts, value)
    return f"<code>{escape(inert(str(value)))}</code>"


def _yes(texts: Texts, value: Any) -> str:
    return str(escape(texts("value.yes" if value else "value.no")))


def _stars(texts: Texts, value: Any) -> str:
    if value is None:
        return ""
    label, count = escape(texts("value.stars", count=int(value))), int(value)
    rest = f'<span class="faint">{"☆" * (5 - count)}</span>'
    return f'<span class="stars" role="img" aria-label="{label}">{"★" * count}{rest}</span>'


def _chips(values: Iterable[str]) -> str:
    chips = "".join(f"<code>{html.escape(inert(one))}</code>" for one in values)
    return f'<span class="chips">{chips}</span>' if chips else ""


def _writer(texts: Texts, kind: str) -> Callable[[Any], str] | None:
    """Return what writes the values of a kind, or None."""
    match kind:
        case "box":
            words = (_yes(texts, False), _yes(texts, True))
            return lambda value: words[bool(value)]
        case "money":
            return lambda value: f'<span class="money">{html.escape(texts.money(value))}</span>'
        case "number":
            return lambda value: html.escape(texts.number(value, 2))
        case "choice":
            return lambda value: f"<bdi>{html.escape(inert(word_of(texts, value)))}</bdi>"
        case "several":
            return lambda value: _chips(word_of(texts, one) for one in value)
        case "lines":
            return lambda value: _chips(map(str, value))
    return None


def _written(write: Callable[[Any], str], show: Callable[[Any], Any] | None, value: Any) -> str:
    if value is None:
        return ""
    return write(value if show is None else show(value))


def _value(texts: Texts, schema: Mapping[str, Any], value: Any) -> str:
    """Return a value in its JSON form as HTML."""
    if value is None or value == []:
        return ""
    write = _writer(texts, kind_of(schema))
    if write is not None:
        return write(value)
    if isinstance(value, (dict, list, Raw)):
        return f"<code>{escape(inert(json.encode(value).decode()))}</code>"
    return _text(value)


def _cell(texts: Texts, name: str, schema: Mapping[str, Any], value: Any) -> Markup:
    value = masked(name, value) if name in MASKS else value
    return Markup(_value(texts, schema, value)) or NONE  # noqa: S704 - escaped above


def _table(
    texts: Texts, name: str, label: str, item: Mapping[str, Any], rows: Sequence[Any]
) -> Fact:
    members = item["properties"]
    # An id means nothing to a reader, and a row has a description beside it.
    used = [
        member
        for member in members
        if not member.endswith(("id", "Id")) and any(member in row for row in rows)
    ]
    cells = [[_cell(texts, one, members[one], row.get(one)) for one in used] for row in rows]
    numeric = [kind_of(plain(members[one])) in ("money", "number") for one in used]
    return Fact(name, label, "table", cells, [label_of(texts, one) for one in used], numeric)


def _pairs(
    texts: Texts, members: Mapping[str, Any], value: Mapping[str, Any]
) -> list[tuple[str, Markup]]:
    return [
        (label_of(texts, name), _cell(texts, name, members[name], _worded(texts, name, inner)))
        for name, inner in value.items()
        if name in members
    ]


def _worded(texts: Texts, name: str, value: Any) -> Any:
    """Return the word for a type that the console offers, such as a way to ship."""
    return word_of(texts, value) if name == "type" and isinstance(value, str) else value
