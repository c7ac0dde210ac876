"""Conditions of a webhook on the `data` of events: `field = value` and `field is present`.

A webhook with conditions gets the events for which all of them hold. Values are compared as text:
`won`, `true`, `12.50`; a number equals every spelling of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import Raw, Struct

from outbox.database.transaction import Row

MOST = 10
LONGEST = 200
"""The longest value of a condition, in characters."""


class Unreadable(ValueError):
    """The stored conditions are damaged."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition; with `value` None it asks that the field is present."""

    field: str
    value: str | None = None

    def holds(self, data: Mapping[str, Raw]) -> bool:
        """Return whether it holds for these fields. A field that is null is not present."""
        raw = data.get(self.field)
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


def data_of(body: bytes | None) -> Mapping[str, Raw] | None:
    """Return the fields of an event's `data`; None for an erased or damaged body."""
    if body is None:
        return None
    try:
        return _decoder.decode(body).data
    except msgspec.DecodeError:
        return None


def hold(conditions: Sequence[Condition], data: Mapping[str, Raw] | None) -> bool:
    """Return whether all conditions hold for the event with this data.

    They hold for an erased or damaged body: its delivery tells the owner what has happened.
    """
    return data is None or all(condition.holds(data) for condition in conditions)


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
    return json.dumps([[one.field, one.value] for one in conditions], ensure_ascii=False)


def parse(text: str | None) -> tuple[Condition, ...]:
    """Parse the column `conditions`. Raise Unreadable."""
    if text is None:
        return ()
    try:
        pairs = msgspec.json.decode(text, type=list[tuple[str, str | None]])
    except msgspec.DecodeError as error:
        raise Unreadable(str(error)) from None
    return tuple(Condition(field, value) for field, value in pairs)


def of(webhook: Row) -> tuple[Condition, ...] | None:
    """Return the conditions of a row of `webhooks`; None for damaged ones."""
    try:
        return parse(webhook["conditions"])
    except Unreadable:
        return None
