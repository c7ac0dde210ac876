"""Chain the attempts of a webhook: each row has a digest over itself and over the row before it.

A digest is SHA-256 over the digest before it (32 bytes, none for the first row) and a JSON array:
the columns of COVERED in their order, with one digest of the response in place of its headers and
body, then the row's place in the chain and the digest of the body that was sent; in rows from
migration 0021 on also the digest of `event_of` in hex and the state that the attempt gave its
delivery.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

COVERED = (
    "owner_id", "delivery_id", "webhook_id", "event_id", "number", "kind", "outcome",
    "status", "error", "started_at", "dns_us", "connect_us", "tls_us", "first_byte_us",
    "total_us", "address", "url", "request_headers", "response_headers", "response_body",
    "truncated", "node_id",
)  # fmt: skip
"""The columns of an attempt that its digest covers."""
LINK = ("place", "body_digest", "event_digest", "state", "digest")
"""The columns that make it a link of the chain."""
WEBHOOK = COVERED.index("webhook_id")
HEADERS, BODY = COVERED.index("response_headers"), COVERED.index("response_body")

Attempted = tuple[Sequence[Any], str, bytes | None, str | None]
"""The values of COVERED, the hex digest of the body, the digest of the event, and the state."""
Head = tuple[int, str]
"""The end of a chain: the place of its last row, 0 without one, and its digest in hex."""

_json = msgspec.json.Encoder()


def link(
    rows: Iterable[Attempted], heads: Mapping[str, str | None]
) -> tuple[list[tuple[Any, ...]], dict[str, Head]]:
    """Return the rows of attempts with their LINK, and the new heads of their webhooks.

    `heads` are the places and digests before, as `lanes.CHAIN` reads them.
    """
    ends: dict[str, tuple[int, bytes]] = {}
    linked = []
    for values, body_hex, event, state in rows:
        webhook_id = values[WEBHOOK]
        if webhook_id in ends:
            place, before = ends[webhook_id]
        else:
            last, _, digest = (heads[webhook_id] or "0").partition(" ")
            place, before = int(last), bytes.fromhex(digest)
        body_digest = packed(body_hex)
        own = digest_of(
            before, values, answer_of(values[HEADERS], values[BODY]), place + 1, body_digest,
            event=event, state=state,
        )  # fmt: skip
        ends[webhook_id] = place + 1, own
        linked.append((*values, place + 1, body_digest, event, state, own))
    return linked, {webhook: (place, own.hex()) for webhook, (place, own) in ends.items()}


def digest_of(
    before: bytes,
    values: Sequence[Any],
    answer: bytes,
    place: int,
    body_digest: bytes,
    event: bytes | None = None,
    state: str | None = None,
) -> bytes:
    """Return the digest of a row with these values of COVERED, behind the digest `before`."""
    added: tuple[str | None, ...] = ()
    if event is not None or state is not None:
        added = (None if event is None else event.hex(), state)
    content = (
        *values[:HEADERS], answer.hex(), *values[BODY + 1 :], place, body_digest.hex(), *added
    )  # fmt: skip
    return hashlib.sha256(before + _json.encode(content)).digest()


def answer_of(headers: str | None, body: bytes | None) -> bytes:
    """Return the digest of a response: JSON of its headers and the size of its body, then the body.

    It replaces the response when a person is erased.
    """
    size = None if body is None else len(body)
    return hashlib.sha256(_json.encode((headers, size)) + (body or b"")).digest()


def event_of(name: str, record_id: str, record_version: int, occurred_at: int) -> bytes:
    """Return the digest of an event without its body: SHA-256 over a JSON array."""
    return hashlib.sha256(_json.encode((name, record_id, record_version, occurred_at))).digest()


def packed(body_digest: str) -> bytes:
    """Return the bytes of the hex digest of an event's body; a damaged one stays as it is."""
    try:
        return bytes.fromhex(body_digest)
    except ValueError:
        return body_digest.encode()
