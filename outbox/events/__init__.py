"""Write events to the outbox: a unit calls `enqueue` in the transaction of its own change."""

import hashlib
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from outbox.database.transaction import Insert, Tx
from outbox.durations import SECOND
from outbox.events.body import encode

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
