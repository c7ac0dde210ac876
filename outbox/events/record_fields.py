"""Encode the fields of a record that conditions of webhooks may use beside an event's `data`.

They are stored with the event as they were after its write, and are in no body.
outbox.webhooks.conditions reads them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

_encoder = msgspec.json.Encoder()


class RecordField(NamedTuple):
    """The JSON value of a field after the write, and whether the write changed it."""

    value: Any
    changed: bool


def text_of(fields: Mapping[str, RecordField]) -> str | None:
    """Return the text for the column `record_fields`: a list of [name, value, changed].

    None without fields.
    """
    if not fields:
        return None
    return _encoder.encode([(name, *field) for name, field in fields.items()]).decode()
