"""Write events to the outbox: a unit calls `enqueue` in the transaction of its own change.

A body is JSON as JavaScript's JSON.stringify writes it: receivers that verify over their own
serialisation of the parsed body then get the same bytes.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from json.encoder import encode_basestring
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from outbox.database.transaction import Insert, Tx
from outbox.durations import SECOND

# Above this, JavaScript numbers cannot represent every integer.
SAFE_INTEGER = 2**53
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Cause:
    """The request that caused a write; stored with its events."""

    request_id: str | None = None
    traceparent: str | None = None


cause: ContextVar[Cause] = ContextVar("cause", default=Cause())  # noqa: B039 - it is frozen


class RecordField(NamedTuple):
    """The JSON value of a field after the write, and whether the write changed it.

    Conditions of webhooks may use it beside `data`. It is in no body.
    """

    value: Any
    changed: bool


COLUMNS = (
    "id", "owner_id", "name", "record_id", "record_version", "webhook_id", "occurred_at",
    "request_id", "traceparent", "body", "body_digest", "record_fields",
)  # fmt: skip
NO_FIELDS: Mapping[str, RecordField] = MappingProxyType({})
FOUND = "select exists (select 1 from events where id = $1) as found"
INSERT = Insert("events", COLUMNS, found=FOUND, referred=False)
# A separate statement, so that ordinary events need not write about_id.
INSERT_ABOUT = Insert("events", (*COLUMNS, "about_id"), found=FOUND, referred=False)


def enqueue(
    tx: Tx,
    *,
    owner_id: str,
    name: str,
    record_id: str,
    record_version: int,
    data: Mapping[str, Any],
    webhook_id: str | None = None,
    about_id: str | None = None,
    record_fields: Mapping[str, RecordField] = NO_FIELDS,
) -> str:
    """Write an event in the transaction of its change; return the event's id.

    The body `{"event","timestamp","data"}` is frozen here, byte for byte as receivers get it.
    `webhook_id` makes it a test event for that webhook alone; together with `about_id`, an event
    for it about that other webhook. `record_fields` are what conditions of webhooks may use beside
    `data`. Raise ValueError for data that JSON cannot represent.
    """
    event_id = tx.new_id()
    body = encode({"event": name, "timestamp": tx.now // SECOND, "data": data})
    behind = cause.get()
    row = (
        event_id, owner_id, name, record_id, record_version, webhook_id, tx.now,
        behind.request_id, behind.traceparent, body, hashlib.sha256(body).hexdigest(),
        text_of(record_fields) if record_fields else None,
    )  # fmt: skip
    if about_id is None:
        tx.later(INSERT, row)
    else:
        tx.later(INSERT_ABOUT, (*row, about_id))
    tx.wake = True
    return event_id


def text_of(fields: Mapping[str, RecordField]) -> str | None:
    """Return the text for the column `record_fields`: a list of [name, value, changed].

    None without fields.
    """
    if not fields:
        return None
    return _encode([(name, *field) for name, field in fields.items()]).decode()


def message(event: str, now: int, data: Mapping[str, Any]) -> bytes:
    """Return the body of a delivery of `event`; `now` is microseconds UTC. Raise ValueError."""
    return encode({"event": event, "timestamp": now // SECOND, "data": data})


def thin(event: str, timestamp: int, record_id: str, url: str) -> bytes:
    """Return a body with the address of the record instead of its data; `timestamp` is seconds."""
    record = {"id": record_id, "type": event.partition(".")[0], "url": url}
    return encode({"event": event, "timestamp": timestamp, "data": record})


def encode(value: Any) -> bytes:
    """Return compact JSON in UTF-8. Raise ValueError for what JSON or JavaScript cannot carry."""
    return _encode(value) if _is_plain(value) else _text(value).encode("utf-8")


def _is_plain(value: Any) -> bool:
    """Return whether msgspec writes the same: it differs in floats and in large integers."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is int:
        return bool(-SAFE_INTEGER <= value <= SAFE_INTEGER)
    if kind is dict:
        # Texts, which most values are, without a call.
        for key, each in value.items():
            if type(key) is not str:
                return False
            if type(each) is not str and each is not None and not _is_plain(each):
                return False
        return True
    return kind is list and all(map(_is_plain, value))


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, int):
        if abs(value) > SAFE_INTEGER:
            raise ValueError("integers in an event must be within ±2**53")
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        members = (f"{encode_basestring(str(k))}:{_text(v)}" for k, v in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return "[" + ",".join(map(_text, value)) + "]"
    raise ValueError(f"an event cannot carry a {type(value).__name__}")


def _number(value: float) -> str:
    """Format a number by ECMA-262 Number::toString: exponents only outside 1e-7..1e21."""
    if not math.isfinite(value):
        raise ValueError("an event cannot carry NaN or Infinity")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The decimal point comes after `point` digits.
    point = int(exponent or 0) + (
        len(whole.lstrip("0")) or len(fraction.lstrip("0")) - len(fraction)
    )
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    head = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{sign}{head}e{'+' if point > 0 else '-'}{abs(point - 1)}"
