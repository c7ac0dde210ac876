"""Writes the position of a list's next page as text, and reads it back for the same order."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode

from msgspec import MsgspecError, json

from gateway.records.places import Place
from gateway.records.query import NEWEST, Query, keys_of, order_of
from gateway.records.resource import Resource
from outbox.ids import is_id

LONGEST = 16_384
"""Characters of a cursor; a name is a key of up to 1,000 bytes."""
_LEAST, _MOST = -(2**63), 2**63 - 1


def text_of(resource: Resource, query: Query, place: Place | None) -> str | None:
    """Return the text of the cursor for `place`; None without one."""
    if place is None:
        return None
    if query.order and order_of(resource, query) != NEWEST:
        plain = b"s" + json.encode((_named(query), *place.values))
    else:
        kind = "u" if order_of(resource, query) != NEWEST else "c"
        plain = f"{kind}{place.at}.{place.record_id}".encode()
    return urlsafe_b64encode(plain).decode().rstrip("=")


def place_of(resource: Resource, query: Query, text: str) -> Place | None:
    """Return the place of a cursor of the list's order; None for any other text."""
    if len(text) > LONGEST:
        return None
    try:
        plain = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (ValueError, binascii.Error):
        return None
    if query.order and order_of(resource, query) != NEWEST:
        return _sorted(resource, query, plain)
    kind = b"u" if order_of(resource, query) != NEWEST else b"c"
    time, _, record_id = plain[1:].decode("latin-1").partition(".")
    try:
        micros = int(time)
    except ValueError:
        return None
    if plain[:1] != kind or not is_id(record_id) or abs(micros) > 2**62:
        return None
    return Place(micros, record_id)


def _sorted(resource: Resource, query: Query, plain: bytes) -> Place | None:
    """Return the place of a cursor of a list that the caller has sorted."""
    try:
        named, *values, record_id = json.decode(plain[1:], type=list[int | str])
    except (MsgspecError, ValueError):
        return None
    keys = keys_of(resource, query)
    if plain[:1] != b"s" or named != _named(query) or len(values) != len(keys):
        return None
    if not isinstance(record_id, str) or not is_id(record_id):
        return None
    texts = {sort.column for sort in resource.sorts if sort.text}
    for value, (sql, _) in zip(values, keys, strict=True):
        if isinstance(value, str):
            right = sql in texts and "\0" not in value
        else:
            right = sql not in texts and _LEAST <= value <= _MOST
        if not right:
            return None
    return Place(values[0], record_id, tuple(values[1:]))


def _named(query: Query) -> str:
    return ",".join(f"{'-' * descending}{name}" for name, descending in query.order)
