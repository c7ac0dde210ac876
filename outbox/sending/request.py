"""Build one request, its headers and its signatures; pack the headers for the delivery log.

It is one module because what the log leaves out is what each request has.
"""

import binascii
import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from outbox.durations import SECOND
from outbox.sending.client_credentials import ClientCredentials
from outbox.sending.ed25519 import sign_public
from outbox.states import Origin

Header = tuple[str, str]
Mode = Literal["cloudevents", "cloudevents-binary"]
"""The content mode of CloudEvents; the batched one must be asked for, which nobody can here."""
Kept = list[str | Header]
"""The stored headers: values of those that every request has, then the others with their names."""

PREFIX = "whsec_"
SECRET_BYTES = 32
RECORD_URL = "X-Webhook-Record-Url"
"""The address of the record in a thin delivery."""
JSON_TYPE = "application/json"
REQUEST_ORIGIN = "WebHook-Request-Origin"
"""Who asks, in a handshake and in the deliveries after it."""
EVERY = 11
"""The headers at the start of every request."""
VALUES = 6
"""Those of them whose values are stored."""

MOST_CUSTOM = 10
LONGEST_NAME = 64
LONGEST_VALUE = 1024
MASK = "***"
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
VISIBLE = re.compile(r"[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?")
TRACEPARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})")
SPAN = re.compile(r"(?!0{16})[0-9a-f]{16}")

HOP_BY_HOP = frozenset(
    (
        "connection", "http2-settings", "keep-alive", "proxy-authenticate", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    )
)  # fmt: skip
RESERVED = frozenset(
    (
        "accept-encoding", "content-encoding", "content-length", "content-type", "date", "expect",
        "forwarded", "host", "traceparent", "tracestate", "user-agent", "via",
    )
)  # fmt: skip
RESERVED_PREFIXES = ("x-webhook-", "webhook-", "x-forwarded-", "sec-", "proxy-")

OF_BINARY = frozenset(
    (
        "ce-dataschema", "ce-id", "ce-recordversion", "ce-sequence", "ce-snapshot", "ce-source",
        "ce-specversion", "ce-subject", "ce-test", "ce-time", "ce-type",
    )
)  # fmt: skip
OF_FORMS = OF_BINARY | {REQUEST_ORIGIN, "X-Webhook-Source"}
"""Those of CloudEvents and of handshakes."""
OURS = OF_FORMS | frozenset(
    (
        "Content-Type", "User-Agent", "X-Webhook-Attempt", "X-Webhook-Event", "X-Webhook-Id",
        "X-Webhook-Record-Url", "X-Webhook-Record-Version", "X-Webhook-Replay",
        "X-Webhook-Sequence", "X-Webhook-Signature", "X-Webhook-Snapshot", "X-Webhook-Test",
        "X-Webhook-Timestamp", "traceparent", "webhook-id", "webhook-signature",
        "webhook-timestamp",
    )
)  # fmt: skip
"""Every header name that `compose` writes; none of their values is secret."""


@dataclass(frozen=True, slots=True)
class Via:
    """How requests of one webhook reach its receiver.

    `certificate` is a client certificate with its key, in PEM; `proxy` names an egress proxy.
    """

    certificate: str | None = field(default=None, repr=False)
    proxy: str | None = None


DIRECT = Via()


@dataclass(frozen=True, slots=True)
class EventForm:
    """The form of CloudEvents that a webhook gets, and the `source` of its events."""

    mode: Mode
    source: str


@dataclass(slots=True)
class Request:
    """One attempt: its URL, body, headers and signing secrets.

    Nothing changes it; a frozen one takes too long to create.
    """

    event_id: str
    event_name: str
    timestamp: int
    """The timestamp in the body, in seconds."""
    record_version: int
    attempt: int
    origin: Origin
    url: str
    body: bytes
    secrets: tuple[str, ...]
    """The first one signs X-Webhook-Signature; all of them sign webhook-signature."""
    headers: tuple[Header, ...] = ()
    traceparent: str | None = None
    """The traceparent of the write that caused the event."""
    timeout_s: float = 15.0
    sequence: int | None = None
    """The number of the delivery, or of the one that it repeats; None without numbers."""
    repeats: bool = False
    snapshot: str | None = None
    """The job that made the event of the record as it is."""
    signing_keys: tuple[Ed25519PrivateKey, ...] = ()
    """They sign webhook-signature too."""
    via: Via = DIRECT
    record_url: str | None = None
    """The address of the record, when the body has it instead of the data."""
    oauth2: ClientCredentials | None = None
    """They get the access token that its receiver wants."""
    form: EventForm | None = None
    """Another form than that of the contract, in which `body` is already."""
    content_type: str = JSON_TYPE
    context: tuple[Header, ...] = ()
    """The headers of that form."""
    asks_as: str | None = None
    """The name of this sender, when the receiver must have allowed its requests."""
    asks_rate: int = 0
    """The rate that the webhook asks for then, in requests per 1,000 seconds; 0 for none."""


def compose(request: Request, *, service: str, now_wall: int, span_id: str) -> list[Header]:
    """Return all headers of the attempt except Host and Content-Length, in sending order.

    `service` is the product in User-Agent, `now_wall` is microseconds UTC, `span_id` (16 hex
    digits) is this attempt's span in the trace. Raise ValueError for a malformed secret.
    """
    event_id = request.event_id
    body = request.body
    moment = now_wall // SECOND
    standard = sign_standard(request.secrets, event_id, moment, body)
    if request.signing_keys:
        standard += " " + sign_public(request.signing_keys, event_id, moment, body)
    headers = [
        ("Content-Type", request.content_type),
        ("X-Webhook-Event", request.event_name),
        ("X-Webhook-Timestamp", str(request.timestamp)),
        ("X-Webhook-Signature", sign_body(request.secrets[0], body)),
        ("User-Agent", f"{service}-Webhook/1.0"),
        ("X-Webhook-Id", event_id),
        ("X-Webhook-Attempt", str(request.attempt)),
        ("X-Webhook-Record-Version", str(request.record_version)),
        ("webhook-id", event_id),
        ("webhook-timestamp", str(moment)),
        ("webhook-signature", standard),
    ]
    if request.origin == "test":
        headers.append(("X-Webhook-Test", "1"))
    if request.sequence is not None:
        headers.append(("X-Webhook-Sequence", str(request.sequence)))
        if request.repeats:
            headers.append(("X-Webhook-Replay", "1"))
    if request.snapshot is not None:
        headers.append(("X-Webhook-Snapshot", request.snapshot))
    if request.traceparent is not None:
        child = child_of(request.traceparent, span_id)
        if child is not None:
            headers.append(("traceparent", child))
    if request.record_url is not None:
        headers.append((RECORD_URL, request.record_url))
    if request.context:
        headers.extend(request.context)
    if request.asks_as is not None:
        headers.append((REQUEST_ORIGIN, request.asks_as))
    if request.headers:
        headers.extend(request.headers)
    return headers


def new_secret(random: bytes) -> str:
    """Return the secret as its owner sees it: `whsec_` and the base64 of `random` (32 bytes)."""
    return PREFIX + _base64(random)


def sign_body(secret: str, body: bytes) -> str:
    """Return `sha256=` and the hex HMAC-SHA256 of `body`, keyed with the secret's text.

    The scheme of GitHub's X-Hub-Signature-256, in lowercase.
    """
    return "sha256=" + hmac.digest(secret.encode(), body, "sha256").hex()


def sign_standard(secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> str:
    """Return one `v1,<base64>` per secret, separated by spaces, over `message_id.timestamp.body`.

    `timestamp` is in seconds. The scheme of the Standard Webhooks specification, 1.0.0. Raise
    ValueError for a secret that is not `whsec_` and base64.
    """
    content = b"%b.%d.%b" % (message_id.encode(), timestamp, body)
    return " ".join(
        ["v1," + _base64(hmac.digest(key_of(secret), content, "sha256")) for secret in secrets]
    )


@lru_cache(maxsize=10_000)
def key_of(secret: str) -> bytes:
    """Return the key of a `whsec_…` secret. Raise ValueError for another text."""
    if not secret.startswith(PREFIX):
        raise ValueError(f"a signing secret starts with {PREFIX}")
    return binascii.a2b_base64(secret[len(PREFIX) :], strict_mode=True)


def _base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def child_of(traceparent: str, span_id: str) -> str | None:
    """Return the traceparent with `span_id` as parent (W3C Trace Context 1); None if malformed."""
    match = TRACEPARENT.fullmatch(traceparent)
    if match is None or not SPAN.fullmatch(span_id):
        return None
    return f"00-{match[1]}-{span_id}-{match[2]}"


@lru_cache(maxsize=1024)
def span_of(delivery_id: str, attempt: int) -> str:
    """Return the span of an attempt, 16 hex digits.

    It follows from the attempt alone, so that a process can name the span that an earlier one sent
    to a receiver before it was killed.
    """
    return hashlib.blake2b(f"{delivery_id}/{attempt}".encode(), digest_size=8).hexdigest()


@lru_cache(maxsize=1024)
def trace_of(traceparent: str | None) -> str | None:
    """Return the trace id of a traceparent; None without one, and for a malformed one."""
    match = None if traceparent is None else TRACEPARENT.fullmatch(traceparent)
    return None if match is None else match[1]


def masked(headers: Sequence[Header], form: EventForm | None = None) -> list[Header]:
    """Return the headers for the log: values of a webhook's own headers are masked.

    Without a form those of CloudEvents, too, are its own: their names are not reserved then.
    """
    return [
        (name, value if name in OURS and (form or name not in OF_BINARY) else MASK)
        for name, value in headers
    ]


def kept(headers: Sequence[Header], form: EventForm | None = None) -> Kept:
    """Return what to store of the headers of `compose`; values of custom headers are masked.

    What is constant, and what the attempt's row has in another column, is not stored: it was a
    third of the bytes of an attempt.
    """
    if not headers:
        return []
    values: Kept = [
        headers[1][1], headers[2][1], headers[3][1], headers[4][1], headers[7][1], headers[10][1],
        *masked(headers[EVERY:], form),
    ]  # fmt: skip
    if headers[0][1] != JSON_TYPE:
        values.append(headers[0])
    return values


def restored(stored: str | None, event_id: str, number: int, started_at: int) -> list[Header]:
    """Return the headers of an attempt, of its stored text and its row.

    Older rows have all headers with their names. Damaged ones are none: an error would hide the
    attempt.
    """
    try:
        parts = msgspec.json.decode(stored or "[]", type=Kept)
    except (ValueError, RecursionError):
        return []
    rest = [header for header in parts if not isinstance(header, str)]
    values = [header for header in parts if isinstance(header, str)]
    if len(values) != VALUES:
        return [] if values else rest
    event, timestamp, signature, agent, version, standard = values
    own_type = [header for header in rest if header[0] == "Content-Type"]
    return [
        own_type[0] if own_type else ("Content-Type", JSON_TYPE),
        ("X-Webhook-Event", event),
        ("X-Webhook-Timestamp", timestamp),
        ("X-Webhook-Signature", signature),
        ("User-Agent", agent),
        ("X-Webhook-Id", event_id),
        ("X-Webhook-Attempt", str(number)),
        ("X-Webhook-Record-Version", version),
        ("webhook-id", event_id),
        ("webhook-timestamp", str(started_at // SECOND)),
        ("webhook-signature", standard),
        *(header for header in rest if header not in own_type),
    ]


def check_header(name: str, value: str) -> None:
    """Check a custom header of a webhook. Raise ValueError with a sentence for its owner."""
    if not TOKEN.fullmatch(name):
        raise ValueError("Header names can contain only letters, digits and hyphens.")
    if len(name) > LONGEST_NAME:
        raise ValueError(f"Header names can have at most {LONGEST_NAME} characters.")
    folded = name.lower()
    if folded in HOP_BY_HOP:
        raise ValueError(f"{name} is a connection header and cannot be set.")
    if folded in RESERVED or folded.startswith(RESERVED_PREFIXES):
        raise ValueError(f"{name} is set automatically; choose another name.")
    if len(value) > LONGEST_VALUE:
        raise ValueError(f"The value of {name} can have at most {LONGEST_VALUE} characters.")
    if not VISIBLE.fullmatch(value):
        raise ValueError(
            f"The value of {name} must be printable ASCII without leading or trailing spaces."
        )


def check_headers(headers: Sequence[Header]) -> None:
    """Check all custom headers of a webhook. Raise ValueError with a sentence for its owner."""
    if len(headers) > MOST_CUSTOM:
        raise ValueError(f"A webhook can have at most {MOST_CUSTOM} custom headers.")
    seen: set[str] = set()
    for name, value in headers:
        check_header(name, value)
        if name.lower() in seen:
            raise ValueError(f"{name} appears twice.")
        seen.add(name.lower())
