"""Reads the conditions of a webhook as its owner types them, and tries them on samples of events.

outbox.webhooks.conditions stores and judges them.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.domain.catalogue import EVENTS, RESOURCES
from gateway.domain.webhooks.samples import resource_of, sample, sample_fields
from gateway.records.resource import Field
from gateway.records.values import dates
from gateway.records.values.formats import Wrong
from gateway.records.values.patterns import NOT_TEXT
from outbox.events import message, text_of
from outbox.webhooks.conditions import LONGEST, MOST, Condition, equal, facts_of, hold

PRESENT = re.compile(r"(\S+)\s+is\s+present", re.IGNORECASE)
CHANGED = re.compile(r"(\S+)\s+changed", re.IGNORECASE)
EQUAL = re.compile(r"([^\s=]+)\s*=\s*(.*)")
NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,6})?", re.ASCII)

SYNTAX = (
    "Write each condition on its own line, as field = value, as field is present or as field "
    "changed."
)
COUNT = f"A webhook has at most {MOST} conditions."
SIZE = f"A value must have at most {LONGEST} characters, without control characters."
TWICE = "The field {field} has two values; an event has only one."
UNKNOWN = "No selected event has the field {field}. Their fields are: {fields}."
UNCHANGED = "Only a change of these fields can be a condition: {fields}."
NEVER_CHANGED = "No selected event can have a change as a condition."
VALUE = "Put the value of {field} after =, or require only that there is one: {field} is present."
SINGLE = "{field} has no single value; require only that there is one: {field} is present."
TIME = "The value of {field} must be a time, such as 2026-12-01T14:30:00Z."
NUMERIC = "The value of {field} must be a number, such as 12.50."


def read(text: str, events: Sequence[str]) -> tuple[Condition, ...]:
    """Return the conditions of a text, one on each line, on fields of these events.

    Raise ValueError for the first fault.
    """
    conditions: dict[tuple[str, bool], Condition] = {}
    fields = fields_of(events)
    for line in dict.fromkeys(filter(None, map(str.strip, text.splitlines()))):
        condition = _condition(line, fields, events)
        key = (condition.field, condition.changed)
        known = conditions.get(key)
        if known is None or known.value is None:
            conditions[key] = condition
        elif condition.value not in (None, known.value):
            raise ValueError(TWICE.format(field=condition.field))
        if len(conditions) > MOST:
            raise ValueError(COUNT)
    return tuple(conditions.values())


def written(conditions: Sequence[Condition]) -> str:
    """Return the text that `read` reads as these conditions."""
    return "".join(f"{one_line(condition)}\n" for condition in conditions)


def one_line(condition: Condition) -> str:
    """Return the line of one condition."""
    if condition.changed:
        return f"{condition.field} changed"
    if condition.value is None:
        return f"{condition.field} is present"
    plain = condition.value == condition.value.strip() and not condition.value.startswith('"')
    value = condition.value if plain and condition.value else json.dumps(condition.value)
    return f"{condition.field} = {value}"


@dataclass(frozen=True, slots=True)
class Trial:
    """Conditions on the sample of one event: those that fail, and of these the impossible ones."""

    event: str
    body: str
    failing: Sequence[str]
    impossible: Sequence[str]
    """Those that no event of this name can match, so the webhook never gets it."""
    beside: Sequence[str]
    """The fields of the record that the event has beside its data, as conditions."""


def tried(conditions: Sequence[Condition], events: Sequence[str], now: int) -> Sequence[Trial]:
    """Return what the conditions make of a sample of each event; `now` is microseconds UTC."""
    trials = []
    for event in filter(EVENTS.__contains__, events):
        data = sample(event, "0" * 24, now)
        record = sample_fields(event)
        facts = facts_of(message(event, now, data), text_of(record))
        failing = [condition for condition in conditions if not hold([condition], facts)]
        impossible = [
            one_line(condition) for condition in failing if not _possible(condition, event)
        ]
        text = json.dumps(data, ensure_ascii=False, indent=2)
        beside = [
            one_line(Condition(name, _text(field.value)))
            for name, field in record.items()
            if name not in data
        ]
        trials.append(
            Trial(event, text, [one_line(condition) for condition in failing], impossible, beside)
        )
    return trials


def fields_of(events: Sequence[str]) -> Sequence[str]:
    """Return the names of the fields that conditions on these events can use, each once."""
    return tuple(dict.fromkeys(name for event in events for name in _names(event)))


def choices() -> Mapping[str, Sequence[Condition]]:
    """Return conditions on the fields of each kind of record, by its noun, for people to choose.

    They have each value of a closed list, else an example.
    """
    return {
        resource.noun: [
            condition
            for name in resource.filterable
            for condition in (
                *(Condition(name, value) for value in _values(resource.named[name])),
                Condition(name, changed=True),
            )
        ]
        for resource in RESOURCES
        if resource.filterable
    }


def _values(field: Field) -> Sequence[str]:
    schema = field.format.schema
    if schema.get("type") == "boolean":
        return ("true", "false")
    return tuple(schema.get("enum", (field.example,)))


def _names(event: str) -> Sequence[str]:
    """Return the fields of an event's data and of its record; none for an unknown event."""
    names = EVENTS.get(event)
    return () if names is None else (*names, *resource_of(event).filterable)


def _changeable(event: str) -> Sequence[str]:
    """Return the fields of which this event can tell a change: a delete changes none."""
    if event not in EVENTS or event.endswith(".deleted"):
        return ()
    return resource_of(event).filterable


def _possible(condition: Condition, event: str) -> bool:
    if condition.changed:
        return condition.field in _changeable(event)
    if condition.field not in _names(event):
        return False
    if condition.value is None:
        return True
    known = resource_of(event).known_after.get(event.partition(".")[2], {})
    if condition.field in known:
        return equal(known[condition.field], condition.value)
    try:
        return bool(_as_sent(event, condition.field, condition.value))
    except ValueError:
        return False


def _condition(line: str, fields: Sequence[str], events: Sequence[str]) -> Condition:
    present, changed, equality = (form.fullmatch(line) for form in (PRESENT, CHANGED, EQUAL))
    match = present or changed or equality
    if match is None:
        raise ValueError(SYNTAX)
    name = match[1]
    if not fields:
        # The fault is that no event is selected.
        return Condition(name)
    if name not in fields:
        text = UNKNOWN.format(field=repr(name[:80])[1:-1], fields=", ".join(fields))
        raise ValueError(text)
    if present:
        return Condition(name)
    if changed:
        return _change(name, events)
    return Condition(name, _value(name, match[2].strip(), events))


def _change(name: str, events: Sequence[str]) -> Condition:
    names = dict.fromkeys(name for event in events for name in _changeable(event))
    if name in names:
        return Condition(name, changed=True)
    raise ValueError(UNCHANGED.format(fields=", ".join(names)) if names else NEVER_CHANGED)


def _value(name: str, text: str, events: Sequence[str]) -> str:
    if text.startswith('"'):
        try:
            text = str(json.loads(text))
        except ValueError:
            raise ValueError(SYNTAX) from None
    elif not text:
        raise ValueError(VALUE.format(field=name))
    if len(text) > LONGEST or NOT_TEXT.search(text):
        raise ValueError(SIZE)
    faults = []
    for event in events:
        if name in _names(event):
            try:
                return _as_sent(event, name, text)
            except ValueError as fault:
                faults.append(str(fault))
    raise ValueError(faults[0])


def _as_sent(event: str, name: str, text: str) -> str:
    """Return the value as this event writes it. Raise ValueError for one that it never has."""
    field = _field(event, name)
    if field is None:
        return text
    schema: Mapping[str, Any] = field.format.shown or field.format.schema
    if schema.get("type") in ("array", "object"):
        raise ValueError(SINGLE.format(field=name))
    value: Any = text
    if schema.get("type") in ("number", "integer"):
        if not NUMBER.fullmatch(text):
            raise ValueError(NUMERIC.format(field=name))
        value = float(text) if "." in text else int(text)
    if schema.get("type") == "boolean":
        value = {"true": True, "false": False}.get(text, text)
    try:
        stored_value = field.format.accept(value)
    except Wrong as wrong:
        raise ValueError(f"{name}: {wrong.message}") from None
    if isinstance(stored_value, dates.Day):
        # The day begins at another time in each time zone, and hardly an event has that one.
        raise ValueError(TIME.format(field=name))
    shown = field.format.show(stored_value) if field.format.show else stored_value
    return _text(shown) or ""


def _field(event: str, name: str) -> Field | None:
    return resource_of(event).named.get(name)


def _text(value: Any) -> str | None:
    """Return the text of a condition's value that equals this one."""
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else f"{value:.15g}"
