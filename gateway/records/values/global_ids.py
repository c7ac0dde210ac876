"""Converts record ids to global ids, by which the storefront names records, and back.

A global id is the base64 of `Product:018f3a5b7c9d1e2f3a4b5c6d`, in the alphabet of URLs, without
padding.
"""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode

from gateway.records.errors import Fault, Refusal
from outbox.ids import is_id


def global_id(kind: str, record_id: str) -> str:
    """Return the global id of a record; `kind` is its GraphQL type."""
    return urlsafe_b64encode(f"{kind}:{record_id}".encode()).decode().rstrip("=")


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
        fault = Fault(field, "invalid_id", message)
        raise Refusal("validation_error", fault.sentence, faults=[fault])
    return parsed[1]
