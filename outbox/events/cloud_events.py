"""The forms of CloudEvents 1.0.2 for a delivery: its attributes, and how HTTP carries them.

An event has the same id, source, type, subject and time whatever webhook gets it, however often.
`data` is the `data` of the contract's body, byte for byte. In the structured mode no `ce-` header
is sent beside the body, although the HTTP binding allows it: some receivers then read the binary
mode.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import get_args
from urllib.parse import quote

import msgspec

from outbox.durations import SECOND
from outbox.sending.request import JSON_TYPE, EventForm, Header, Mode, Request

MODES: tuple[Mode, ...] = get_args(Mode)
STRUCTURED: Mode = "cloudevents"
STRUCTURED_TYPE = "application/cloudevents+json"
SOURCE = "X-Webhook-Source"
"""The `source` beside a structured body; the delivery log proves the body with it."""
PREFIX = "ce-"
TYPE_PREFIX = "carteiro."
DIGITS = 19
"""Those of the largest number of a delivery; padded, so that texts compare like numbers."""
OWNERS = "/owners/"
# What section 3.1.3.2 of the HTTP binding lets stand: `%` and `"` must be encoded, too.
PLAIN = "".join(map(chr, range(0x21, 0x7F))).translate({ord('"'): None, ord("%"): None})
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


class _Body(msgspec.Struct):
    """The part of an event's body that becomes the data."""

    data: msgspec.Raw


_bodies = msgspec.json.Decoder(_Body)
_texts = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Facts:
    """What the attributes of one event are made of; `occurred_at` is microseconds UTC."""

    event_id: str
    name: str
    source: str
    record_id: str
    occurred_at: int
    extensions: Mapping[str, str]


def source_of(site: str, owner_id: str) -> str:
    """Return the source of an owner's events; `site` is the public address of the server."""
    return f"{site}{OWNERS}{quote(owner_id, safe='')}"


def schema_of(site: str, name: str) -> str:
    """Return the address of the JSON Schema of an event's data."""
    return f"{site}/api/schemas/{quote(name, safe='')}"


def extensions(
    version: str, sequence: str | None, snapshot: str | None, *, test: bool
) -> dict[str, str]:
    """Return the extension attributes of a delivery, whose headers have the same values."""
    return {
        "recordversion": version,
        **({} if sequence is None else {"sequence": sequence.zfill(DIGITS)}),
        **({} if snapshot is None else {"snapshot": snapshot}),
        **({"test": "1"} if test else {}),
    }


def attributes(facts: Facts) -> dict[str, str]:
    """Return the context attributes of an event but `datacontenttype`, as texts."""
    subject = CONTROLS.sub("", facts.record_id)
    site = facts.source.rpartition(OWNERS)[0]
    return {
        "specversion": "1.0",
        "id": facts.event_id,
        "source": facts.source,
        "type": f"{TYPE_PREFIX}{facts.name}",
        # An attribute must not be empty.
        **({"subject": subject} if subject else {}),
        "time": _time(facts.occurred_at),
        "dataschema": schema_of(site, facts.name),
        **facts.extensions,
    }


def data_of(body: bytes) -> bytes:
    """Return the `data` of an event's body in its own bytes. Raise ValueError for other JSON."""
    return bytes(_bodies.decode(body).data)


def structured(facts: Facts, body: bytes) -> bytes:
    """Return the JSON format of an event with this body."""
    context = _texts.encode({**attributes(facts), "datacontenttype": JSON_TYPE})
    return context[:-1] + b',"data":' + data_of(body) + b"}"


def binary(facts: Facts) -> tuple[Header, ...]:
    """Return the headers of the binary mode; the body is the data."""
    return tuple((f"{PREFIX}{name}", encoded(text)) for name, text in attributes(facts).items())


def apply(request: Request, form: EventForm, record_id: str, occurred_at: int) -> None:
    """Give a request whose body is that of the contract another form."""
    sequence = None if request.sequence is None else str(request.sequence)
    facts = Facts(
        request.event_id, request.event_name, form.source, record_id, occurred_at,
        extensions(
            str(request.record_version), sequence, request.snapshot, test=request.origin == "test"
        ),
    )  # fmt: skip
    request.form = form
    if form.mode == STRUCTURED:
        request.body = structured(facts, request.body)
        request.content_type = STRUCTURED_TYPE
        request.context = ((SOURCE, form.source),)
    else:
        request.body = data_of(request.body)
        request.context = binary(facts)


def encoded(text: str) -> str:
    """Return the value of a header for a text: percent-encoded as the HTTP binding says."""
    return quote(text, safe=PLAIN)


def sent(body: bytes, named: Mapping[str, str], record_id: str, occurred_at: int) -> bytes:
    """Return the body of a request with these headers; `body` is that of the contract."""
    if _is_binary(named):
        return data_of(body)
    if named.get("Content-Type") != STRUCTURED_TYPE:
        return body
    further = extensions(
        named["X-Webhook-Record-Version"],
        named.get("X-Webhook-Sequence"),
        named.get("X-Webhook-Snapshot"),
        test="X-Webhook-Test" in named,
    )
    source = named[SOURCE]
    facts = Facts(
        named["X-Webhook-Id"], named["X-Webhook-Event"], source, record_id, occurred_at, further
    )
    return structured(facts, body)


def context_of(headers: Sequence[Header]) -> tuple[Header, ...]:
    """Return the headers that belong to the form of their request; none for the contract's."""
    if _is_binary(dict(headers)):
        return tuple(one for one in headers if one[0].startswith(PREFIX))
    return tuple(one for one in headers if one[0] == SOURCE)


def _is_binary(named: Mapping[str, str]) -> bool:
    """Return whether headers are of the binary mode; a webhook's own ones have no id of events."""
    event_id = named.get("X-Webhook-Id")
    return event_id is not None and named.get(f"{PREFIX}id") == encoded(event_id)


def _time(moment: int) -> str:
    """Return an instant as RFC 3339 in UTC, with milliseconds."""
    at = datetime.fromtimestamp(moment // SECOND, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{moment % SECOND // 1000:03}Z"
