"""Write docs/vectors.json: requests as Carteiro sends them, and requests that a receiver refuses.

The product's own code composes each of them; what is to be refused is changed afterwards.
`python -m tests.docs.vectors` writes the file, and a test compares it with what this code makes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from outbox.events import encode
from outbox.sending.request import Request, compose, new_secret, sign_standard
from tests.architecture.tree import ROOT

FILE = ROOT / "docs" / "vectors.json"
NOW = 1_795_271_400
TOLERANCE = 300
EVENT_ID = "019a9d1c2f00093e7d5fdbaa"
SPAN = "00f067aa0ba902b7"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SECRET = new_secret(bytes(range(32)))
STAGED = new_secret(bytes(range(100, 132)))
OTHER = new_secret(bytes(range(200, 232)))
REASONS = {
    "missing_header": "webhook-id, webhook-timestamp or webhook-signature is absent or empty",
    "malformed_timestamp": "webhook-timestamp is not 1 to 12 digits",
    "timestamp_too_old": "webhook-timestamp is more than 300 seconds before the clock",
    "timestamp_too_new": "webhook-timestamp is more than 300 seconds after the clock",
    "no_v1_signature": "no value of webhook-signature starts with v1,",
    "wrong_signature": "no value that starts with v1, is the signature of this request",
}
"""Every reason to refuse, in the order in which a receiver looks for them."""
ABOUT = (
    "Requests for the test of a receiver. For each one, `secret` is what the receiver knows, `now` "
    "its clock in Unix seconds, `headers` and `body` (in UTF-8) the request; verification by "
    "webhook-signature must give `accepted`, and `reason` when it refuses."
)


Headers = dict[str, str]


@dataclass(frozen=True)
class Vector:
    """One request, the secret and the clock of its receiver, and the verdict."""

    name: str
    says: str
    headers: Mapping[str, str]
    body: bytes
    reason: str | None = None
    """Why verification by webhook-signature refuses it; None: it accepts."""
    by_body: bool = True
    """Whether X-Webhook-Signature is right; it covers the body alone."""
    secret: str = SECRET
    now: int = NOW

    def __str__(self) -> str:
        return self.name

    def row(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "says": self.says,
            "secret": self.secret,
            "now": self.now,
            "headers": dict(self.headers),
            "body": self.body.decode(),
            "accepted": self.reason is None,
            "reason": self.reason,
            "acceptedByXWebhookSignature": self.by_body,
        }


PLAIN = Request(
    event_id=EVENT_ID,
    event_name="contact.created",
    timestamp=NOW - 1,
    record_version=1,
    attempt=1,
    origin="event",
    url="https://receiver.example.com/",
    body=b"",
    secrets=(SECRET,),
    traceparent=TRACE,
)


def contact(name: str, timestamp: int = NOW - 1) -> bytes:
    data = {
        "id": "019a9d1c2f00aa317d5fdbaa", "name": name, "email": None, "phone": None,
        "createdAt": "2026-11-21T14:29:59.000Z",
    }  # fmt: skip
    return encode({"event": "contact.created", "timestamp": timestamp, "data": data})


def sent(request: Request, at: int = NOW) -> Headers:
    """The headers of an attempt as the product composes them."""
    return dict(compose(request, service="Carteiro", now_wall=at * 1_000_000, span_id=SPAN))


ASCII = replace(PLAIN, body=contact("Ana Souza"))
GOOD = Vector("ascii", "A first attempt with an ASCII body.", sent(ASCII), ASCII.body)
SIGNATURE = GOOD.headers["webhook-signature"]


def _request(name: str, says: str, request: Request, at: int = NOW, **more: Any) -> Vector:
    return Vector(name, says, sent(request, at), request.body, **more)


def _changed(name: str, says: str, reason: str | None, **headers: str) -> Vector:
    """The good request with other values in headers; `_` in a name is a hyphen."""
    new = {key.replace("_", "-"): value for key, value in headers.items()}
    return replace(GOOD, name=name, says=says, reason=reason, headers=dict(GOOD.headers) | new)


def _without(header: str) -> Vector:
    kept = {name: value for name, value in GOOD.headers.items() if name != header}
    name = "no_" + header.replace("-", "_")
    return replace(
        GOOD, name=name, says=f"Without {header}.", reason="missing_header", headers=kept
    )


def _body(name: str, says: str, body: bytes) -> Vector:
    return replace(GOOD, name=name, says=says, reason="wrong_signature", by_body=False, body=body)


def _accepted() -> list[Vector]:
    both = replace(ASCII, secrets=(SECRET, STAGED))
    retry = replace(PLAIN, attempt=10, body=contact("Ana Souza", NOW - 260_000))
    deleted = {"event": "contact.deleted", "timestamp": NOW - 1, "data": {"id": EVENT_ID}}
    return [
        GOOD,
        _request("utf8", "Accents, an emoji, U+2028 and escapes: the raw bytes count.",
                 replace(PLAIN, body=contact('Conceição "Ção" \\ 🌱\u2028\x01\t/é'))),
        _request("smallest", "The event with the fewest fields.",
                 replace(PLAIN, event_name="contact.deleted", body=encode(deleted))),
        _request("large", "A body of more than 64 KiB.",
                 replace(PLAIN, body=contact("Ação " * 11_000))),
        _request("retry", "A retry: the event is three days old, the attempt is not.",
                 replace(retry, timestamp=NOW - 260_000)),
        _request("test_event", "A test event from the console.",
                 replace(ASCII, origin="test")),
        _request("own_headers", "A webhook with a header of its own.",
                 replace(ASCII, headers=(("Authorization", "Bearer 12345"),))),
        _request("rotation_old_secret", "Two signatures; the receiver knows the old secret.", both),
        _request("rotation_new_secret", "Two signatures; the receiver knows the new secret.", both,
                 secret=STAGED, by_body=False),
        _request("rotation_activated", "The new secret is active; the receiver knows it.",
                 replace(ASCII, secrets=(STAGED, SECRET)), secret=STAGED),
        _request("oldest", "Sent 300 seconds before the receiver's clock.", ASCII, NOW - TOLERANCE),
        _request("newest", "Sent 300 seconds after the receiver's clock.", ASCII, NOW + TOLERANCE),
        _changed("later_version", "A signature of a version that the receiver does not know, too.",
                 None, webhook_signature=f"v2,AAAA {SIGNATURE}"),
    ]  # fmt: skip


def _refused() -> list[Vector]:
    body, right = GOOD.body, SIGNATURE.removeprefix("v1,")
    malformed = "malformed_timestamp"
    moment = str(NOW + 1)
    elsewhere = sign_standard([SECRET], EVENT_ID[::-1], NOW, body)
    as_text = "whsec_" + base64.b64encode(SECRET.encode()).decode()
    spaced = json.dumps(json.loads(body)).encode()
    return [
        _body("tampered_body", "One letter of the body is another.", body.replace(b"Ana", b"Ona")),
        _body("spaced_body", "The same JSON in other bytes.", spaced),
        _body("longer_body", "A line break after the body.", body + b"\n"),
        _body("no_body", "The body is lost.", b""),
        _changed("other_id", "Another id.", "wrong_signature", webhook_id=EVENT_ID[:-1] + "b"),
        _changed("other_timestamp", "Another timestamp.", "wrong_signature",
                 webhook_timestamp=moment),
        replace(GOOD, name="wrong_secret", says="The receiver knows another secret.",
                reason="wrong_signature", by_body=False, secret=OTHER),
        _request("secret_as_text", "Signed with the text of the secret as the key.",
                 replace(ASCII, secrets=(as_text,)), reason="wrong_signature", by_body=False),
        _changed("signature_of_another", "The signature of another event.", "wrong_signature",
                 webhook_signature=elsewhere),
        _request("timestamp_too_old", "Sent 301 seconds before the receiver's clock, and signed "
                 "correctly.", ASCII, NOW - TOLERANCE - 1, reason="timestamp_too_old"),
        _request("timestamp_too_new", "Sent 301 seconds after the receiver's clock, and signed "
                 "correctly.", ASCII, NOW + TOLERANCE + 1, reason="timestamp_too_new"),
        *(_without(header) for header in ("webhook-id", "webhook-timestamp", "webhook-signature")),
        _changed("empty_signature", "An empty signature.", "missing_header", webhook_signature=""),
        _changed("timestamp_in_words", "A date as the timestamp.", malformed,
                 webhook_timestamp="Sat, 21 Nov 2026 14:30:00 GMT"),
        _changed("negative_timestamp", "A minus before the timestamp.", malformed,
                 webhook_timestamp=f"-{NOW}"),
        _changed("timestamp_in_hex", "The timestamp in base 16.", malformed,
                 webhook_timestamp=hex(NOW)),
        _changed("timestamp_too_long", "A timestamp of 30 digits.", malformed,
                 webhook_timestamp="9" * 30),
        _changed("timestamp_in_milliseconds", "Milliseconds as the timestamp.", malformed,
                 webhook_timestamp=f"{NOW}000"),
        _changed("wrong_prefix", "The signature under the name of another version.",
                 "no_v1_signature", webhook_signature=f"v2,{right}"),
        _changed("no_prefix", "The signature without its version.", "no_v1_signature",
                 webhook_signature=right),
        _changed("capital_prefix", "The version in a capital letter.", "no_v1_signature",
                 webhook_signature=f"V1,{right}"),
        _changed("header_of_the_other_scheme", "The value of X-Webhook-Signature.",
                 "no_v1_signature", webhook_signature=GOOD.headers["X-Webhook-Signature"]),
        _changed("truncated_signature", "The signature without its last ten letters.",
                 "wrong_signature", webhook_signature=SIGNATURE[:-10]),
        _changed("only_the_prefix", "The version alone.", "wrong_signature",
                 webhook_signature="v1,"),
        _changed("hex_signature", "The signature in hex.", "wrong_signature",
                 webhook_signature=f"v1,{base64.b64decode(right).hex()}"),
        _changed("lowercase_signature", "The signature in lowercase.", "wrong_signature",
                 webhook_signature=SIGNATURE.lower()),
        _changed("signatures_with_comma", "Two signatures, separated by a comma.",
                 "wrong_signature", webhook_signature=f"v1,{right[::-1]},{SIGNATURE}"),
        _changed("letters_beyond_ascii", "A signature with letters beyond ASCII.",
                 "wrong_signature", webhook_signature="v1,é" + right[1:]),
    ]  # fmt: skip


VECTORS = (*_accepted(), *_refused())


def text() -> str:
    """Return the file: a vector a line."""
    lines = ",\n".join(json.dumps(each.row(), ensure_ascii=False) for each in VECTORS)
    return (
        f'{{"about": {json.dumps(ABOUT)},\n"tolerance": {TOLERANCE},\n'
        f'"reasons": {json.dumps(REASONS, indent=1)},\n"vectors": [\n{lines}\n]}}\n'
    )


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
