"""Reads the conditions of a webhook as its owner types them, and tries them on samples of events.

outbox.webhooks.conditions stores and judges them.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.domain.catalogue import EVENTS, RESOURCES
from gateway.domain.webhooks.samples import sample
from gateway.records.resource import Field
from gateway.records.values.format import Wrong, of_json
from gateway.records.values.patterns import NOT_TEXT
from outbox.events.body import message
from outbox.webhooks.conditions import LONGEST, MOST, Condition, data_of, hold

PRESENT = re.compile(r"(\S+)\s+is\s+present", re.IGNORECASE)
EQUAL = re.compile(r"([^\s=]+)\s*=\s*(.*)")
NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,6})?", re.ASCII)

SYNTAX = "Write each condition on a line of its own, as field = value or as field is present."
COUNT = f"A webhook has at most {MOST} conditions."
SIZE = f"A value must have at most {LONGEST} characters, without control characters."
TWICE = "The field {field} has two values; an event has only one."
UNKNOWN = "No selected event has the field {field}. Their fields are: {fields}."
VALUE = "After = comes the value of {field}. To ask only that it is there: {field} is present."
NUMERIC = "The value of {field} must be a number, such as 12.50."


def read(text: str, events: Sequence[str]) -> tuple[Condition, ...]:
    """Return the conditions of a text, one on each line, on fields of these events.

    Raise ValueError for the first fault.
    """
    conditions: dict[str, Condition] = {}
    fields = fields_of(events)
    for line in dict.fromkeys(filter(None, map(str.strip, text.splitlines()))):
        condition = _condition(line, fields, events)
        known = conditions.get(condition.field)
        if known is None or known.value is None:
            conditions[condition.field] = condition
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
    if condition.value is None:
        return f"{condition.field} is present"
    plain = condition.value == condition.value.strip() and not condition.value.startswith('"')
    value = condition.value if plain and condition.value else json.dumps(condition.value)
    return f"{condition.field} = {value}"


@dataclass(frozen=True, slots=True)
class Trial:
    """Conditions on the sample of one event: those that fail, and of these the hopeless ones."""

    event: str
    body: str
    failing: Sequence[str]
    hopeless: Sequence[str]
    """Those that no event of this name fulfils, so that the webhook never gets it."""


def tried(conditions: Sequence[Condition], events: Sequence[str], now: int) -> Sequence[Trial]:
    """Return what the conditions make of a sample of each event; `now` is microseconds UTC."""
    trials = []
    for event in filter(EVENTS.__contains__, events):
        data = sample(event, "0" * 24, now)
        values = data_of(message(event, now, data))
        failing = [one for one in conditions if not hold([one], values)]
        hopeless = [one_line(one) for one in failing if not _possible(one, event)]
        text = json.dumps(data, ensure_ascii=False, indent=2)
        trials.append(Trial(event, text, [one_line(one) for one in failing], hopeless))
    return trials


def fields_of(events: Sequence[str]) -> Sequence[str]:
    """Return the names of the fields that these events have, without repetition."""
    return tuple(dict.fromkeys(name for event in events for name in EVENTS.get(event, ())))


def _possible(condition: Condition, event: str) -> bool:
    if condition.field not in EVENTS[event]:
        return False
    try:
        return condition.value is None or bool(_as_sent(event, condition.field, condition.value))
    except ValueError:
        return False


def _condition(line: str, fields: Sequence[str], events: Sequence[str]) -> Condition:
    present, equal = PRESENT.fullmatch(line), EQUAL.fullmatch(line)
    match = present or equal
    if match is None:
        raise ValueError(SYNTAX)
    name = match[1]
    if name not in fields:
        text = UNKNOWN.format(field=repr(name[:80])[1:-1], fields=", ".join(fields))
        raise ValueError(text)
    return Condition(name, None if present else _value(name, match[2].strip(), events))


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
        if name in EVENTS.get(event, ()):
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
    value: Any = text
    if schema.get("type") in ("number", "integer"):
        if not NUMBER.fullmatch(text):
            raise ValueError(NUMERIC.format(field=name))
        value = float(text) if "." in text else int(text)
    try:
        kept = field.format.accept(value, of_json)
    except Wrong as wrong:
        raise ValueError(f"{name}: {wrong.message}") from None
    shown = field.format.show(kept) if field.format.show else kept
    return shown if isinstance(shown, str) else f"{shown:.15g}"


def _field(event: str, name: str) -> Field | None:
    noun = event.partition(".")[0]
    [resource] = [one for one in RESOURCES if one.noun == noun]
    return resource.named.get(name)
