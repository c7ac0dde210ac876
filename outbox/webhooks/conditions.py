"""Conditions of a webhook on an event: `field = value`, `field is present` and `field changed`.

A webhook with conditions gets the events for which all of them hold. Fields are those of `data` and
the stored fields of the record, as they were after the write. Values are compared as text: `won`,
`true`, `12.50`; a number equals every spelling of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import Raw, Struct

from outbox.database.transaction import Row

MOST = 10
LONGEST = 200
"""The longest value of a condition, in characters."""
CHANGED = "changed"
"""The third item of a stored condition that asks for a change."""
# SQLite may give damaged text as another type. Bytes that are not UTF-8 are no error of msgspec,
# nor are a thousand nested lists.
DAMAGED = (msgspec.DecodeError, UnicodeError, RecursionError, TypeError)


class Unreadable(ValueError):
    """The stored conditions are damaged."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What conditions are judged by: fields by name, and the record's fields that changed."""

    fields: Mapping[str, Raw]
    changed: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition; with `value` None it asks that the field is present.

    With `changed` it asks instead that the write changed this field of the record.
    """

    field: str
    value: str | None = None
    changed: bool = False

    def holds(self, facts: Facts) -> bool:
        """Return whether it holds for these facts. A field that is null is not present."""
        if self.changed:
            return self.field in facts.changed
        raw = facts.fields.get(self.field)
        if raw is None:
            return False
        # Fan-out asks this for every webhook, so a long list or object is never read.
        first = bytes(memoryview(raw)[:1])
        if self.value is None:
            return first != b"n"
        return first not in (b"[", b"{") and equal(msgspec.json.decode(raw), self.value)


class _Event(Struct):
    data: dict[str, Raw]


_decoder = msgspec.json.Decoder(_Event)
_fields_decoder = msgspec.json.Decoder(list[tuple[str, Raw, bool]])


def stored_facts(event: Row, body: bytes | None) -> Facts | None:
    """Return the facts of a stored event with this body; None for an erased or damaged one."""
    # A changed byte may leave valid JSON with another value, which would leave the event out.
    if not isinstance(body, bytes) or hashlib.sha256(body).hexdigest() != event["body_digest"]:
        return None
    return facts_of(body, event["record_fields"])


def facts_of(body: bytes, fields: str | None = None) -> Facts | None:
    """Return the facts of an event: its `data`, and `fields`, its column `record_fields`.

    None for those that cannot be read.
    """
    try:
        data = _decoder.decode(body).data
        if fields is None:
            return Facts(data)
        stored = _fields_decoder.decode(fields)
    except DAMAGED:
        return None
    beside = {name: value for name, value, _ in stored}
    return Facts(beside | data, {name for name, _, changed in stored if changed})


def hold(conditions: Sequence[Condition], facts: Facts | None) -> bool:
    """Return whether all conditions hold for the event with these facts.

    They hold for an erased or damaged event: its delivery tells the owner what has happened.
    """
    if facts is None:
        return True
    try:
        return all(condition.holds(facts) for condition in conditions)
    except DAMAGED:
        # Values are decoded only here.
        return True


def equal(field: object, value: str) -> bool:
    """Return whether a value of `data` is the one that `value` writes."""
    if isinstance(field, str):
        return field == value
    if isinstance(field, bool):
        return value == ("true" if field else "false")
    if isinstance(field, int | float):
        try:
            return float(value) == field
        except ValueError:
            return False
    return False


def stored(conditions: Sequence[Condition]) -> str | None:
    """Return the text for the column `conditions`."""
    if not conditions:
        return None
    rows = [[one.field, one.value, CHANGED][: 3 if one.changed else 2] for one in conditions]
    return json.dumps(rows, ensure_ascii=False)


def parse(text: str | None) -> tuple[Condition, ...]:
    """Parse the column `conditions`. Raise Unreadable."""
    if text is None:
        return ()
    try:
        rows = msgspec.json.decode(text, type=list[tuple[str | None, ...]])
    except DAMAGED as error:
        raise Unreadable(str(error)) from None
    return tuple(map(_condition, rows))


def _condition(row: Sequence[str | None]) -> Condition:
    match row:
        case [str(field), value]:
            return Condition(field, value)
        case [str(field), None, str(kind)] if kind == CHANGED:
            return Condition(field, changed=True)
    raise Unreadable(f"{row!r} is not a condition")


def of(webhook: Row) -> tuple[Condition, ...] | None:
    """Return the conditions of a row of `webhooks`; None for damaged ones."""
    try:
        return parse(webhook["conditions"])
    except Unreadable:
        return None
