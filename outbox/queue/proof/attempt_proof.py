"""Check one recorded attempt: its digest, its body, its signatures."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from outbox.database.transaction import Row
from outbox.durations import MINUTE, SECOND
from outbox.events.sent_body import sent
from outbox.queue.state.chain import BODY, COVERED, HEADERS, answer_of, digest_of, event_of, packed
from outbox.sending.request import restored, sign_body, sign_standard
from outbox.webhooks.secrets import KeyRing, SealBroken

TRUNCATED = COVERED.index("truncated")
TOLERANCE = MINUTE
"""Tolerance for the clocks of several nodes, in microseconds."""

Signed = Literal["right", "replaced", "no_secret", "no_body", "unsent"]
"""The result of a check of signatures; all but the first say why there was none."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """The decrypted secrets of a webhook, and since when the current one signs.

    It signs attempts behind `place` of the chain, except those that were under way.
    """

    current: str
    others: tuple[str, ...]
    since: int
    place: int


CHANGED: Mapping[str, str] = {
    "digest": "its content does not match its digest",
    "answer": "its response was removed, but its event is not erased",
    "both": "it has a response beside the digest that stands for one",
    "event": "the digest of its event's body was changed",
    "facts": "name, record, version or time of its event was changed",
    "state": "the state of its delivery was changed",
    "delivery": "its delivery is missing",
    "body": "the body of its event was changed",
    "gone": "the body of its event was removed, but the event is not erased",
    "signature": "its signature does not match its body",
}


def open_secrets(webhook: Row, ring: KeyRing | None) -> Secrets | None:
    """Return the secrets of a webhook's row; None when no key opens them."""
    if ring is None:
        return None
    try:
        current, *others = (
            ring.open(bytes(webhook[name]), webhook["id"]).decode()
            for name in ("secret", "staged_secret", "old_secret")
            if webhook[name] is not None
        )
        sign_standard((current, *others), "", 0, b"")
    except (SealBroken, ValueError):
        return None
    return Secrets(
        current, tuple(others), int(webhook["secret_since"]), int(webhook["secret_place"])
    )


class Judge:
    """Judges rows of attempts with their events, and counts the results of signatures.

    `narrow` counts digests from before they covered the delivery's state and the event.
    """

    def __init__(self) -> None:
        self.signed: Counter[Signed] = Counter()
        self.narrow = 0

    def fault_of(self, row: Row, before: bytes, secrets: Secrets | None) -> str | None:
        """Return a sentence about what was changed in a row; None when nothing was.

        `before` is the digest of the row before it.
        """
        values = [row[name] for name in COVERED]
        # SQLite has a number for it.
        values[TRUNCATED] = _boolean(values[TRUNCATED])
        values[BODY] = None if values[BODY] is None else _bytes(values[BODY])
        answer = row["answer_digest"]
        if answer is None:
            answer = answer_of(values[HEADERS], values[BODY])
        elif values[HEADERS] is not None or values[BODY] is not None:
            return CHANGED["both"]
        elif row["kept"] is not None and row["erased_at"] is None:
            return CHANGED["answer"]
        place, sent = row["place"], _bytes(row["body_digest"])
        event, state = row["event_digest"], row["state"]
        own = digest_of(
            before, values, _bytes(answer), place, sent,
            event=None if event is None else _bytes(event), state=state,
        )  # fmt: skip
        if _bytes(row["digest"]) != own:
            return CHANGED["digest"]
        return self._delivery(row) or self._event(row, sent) or self._signature(row, secrets)

    def _delivery(self, row: Row) -> str | None:
        state = row["state"]
        if state is None:
            self.narrow += 1
        elif row["delivery_state"] is None:
            return CHANGED["delivery"]
        elif state != "ready" and row["delivery_state"] != state:
            return CHANGED["state"]
        return None

    def _event(self, row: Row, sent: bytes) -> str | None:
        if row["kept"] is None:
            return None
        if row["event_digest"] is not None and _bytes(row["event_digest"]) != event_of(
            row["event_name"], row["record_id"], row["record_version"], row["occurred_at"]
        ):
            return CHANGED["facts"]
        if packed(str(row["event_body_digest"])) != sent:
            return CHANGED["event"]
        if row["body"] is None:
            return None if row["erased_at"] is not None else CHANGED["gone"]
        if hashlib.sha256(_bytes(row["body"])).digest() != sent:
            return CHANGED["body"]
        return None

    def _signature(self, row: Row, secrets: Secrets | None) -> str | None:
        signed = _signed(row, secrets)
        if signed is None:
            return CHANGED["signature"]
        self.signed[signed] += 1
        return None


def _signed(row: Row, secrets: Secrets | None) -> Signed | None:
    """Return how the signatures of a row are; None when one is wrong."""
    if not json.loads(row["request_headers"]):
        return "unsent"
    if secrets is None:
        return "no_secret"
    if row["body"] is None:
        return "no_body"
    sent_headers = restored(
        row["request_headers"], row["event_id"], row["number"], row["started_at"]
    )
    headers, moment = dict(sent_headers), row["started_at"] // SECOND
    body = sent(_bytes(row["body"]), sent_headers, row["record_id"], row["occurred_at"])
    own = headers["X-Webhook-Signature"]
    standard = headers["webhook-signature"].split(" ")

    def signs(secret: str) -> bool:
        return hmac.compare_digest(sign_body(secret, body), own) and (
            sign_standard((secret,), row["event_id"], moment, body) in standard
        )

    if signs(secrets.current):
        return "right"
    # By place, because a clock may have been ahead; by time, because of requests under way.
    if row["place"] > secrets.place and row["started_at"] > secrets.since + TOLERANCE:
        return None
    return "right" if any(map(signs, secrets.others)) else "replaced"


def _boolean(value: object) -> object:
    return bool(value) if value in (0, 1) else value


def _bytes(value: object) -> bytes:
    return bytes(value) if isinstance(value, bytes | memoryview) else repr(value).encode()
