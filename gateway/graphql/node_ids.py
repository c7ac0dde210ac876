"""Converts record ids to global ids, and back.

A global id is the base64 of `Product:018f3a5b7c9d1e2f3a4b5c6d`, in the alphabet of URLs, without
padding.
"""

import binascii
from base64 import urlsafe_b64decode

from gateway.records.draft import refusal
from gateway.records.errors import Fault
from gateway.records.values import global_ids
from outbox.ids import is_id

global_id = global_ids.global_id


def parse(text: str) -> tuple[str, str] | None:
    """Return the type and the record id of a global id, or None."""
    if len(text) > 200 or not text.isascii():
        return None
    try:
        plain = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii")
    except (ValueError, binascii.Error):
        return None
    kind, _, record_id = plain.partition(":")
    # One record has one global id: other spellings of the same bytes are none.
    if not is_id(record_id) or global_id(kind, record_id) != text.rstrip("="):
        return None
    return kind, record_id.lower()


def record_id(text: str, kind: str, field: str, *, plain: bool = False) -> str:
    """Return the record id of a global id of the type `kind`, sent as `field`.

    `plain` also accepts the 24 hex digits of the id. Raises validation_error.
    """
    if plain and is_id(text):
        return text.lower()
    parsed = parse(text)
    if parsed is None or parsed[0] != kind:
        message = f"Send the global id of a {kind}."
        raise refusal([Fault(field, "invalid_id", message)])
    return parsed[1]
