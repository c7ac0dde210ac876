"""The forms of CloudEvents: attributes, headers and bodies, as the SDKs read them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from cloudevents.v1.http import from_http

from outbox.events import cloud_events, message
from outbox.events.sent_body import sent
from outbox.sending.request import (
    OF_FORMS,
    REQUEST_ORIGIN,
    EventForm,
    Header,
    Mode,
    Request,
    compose,
    kept,
    restored,
)
from outbox.states import Origin

SECRET = "whsec_" + "A" * 43 + "="
SITE = "https://crm.example"
NOW = 1_795_271_400_007_999
MODES = cloud_events.MODES
DATA = {"id": "c1", "name": 'João "Zé" 🙂', "value": 10.5, "note": None}


def dressed(
    mode: Mode,
    record_id: str = "c1",
    data: dict[str, Any] | None = None,
    owner: str = "a1",
    at: int = NOW,
    origin: Origin = "event",
    **facts: Any,
) -> tuple[list[Header], bytes]:
    """Return the headers and the body of a request in this form."""
    body = message("contact.created", at, data or DATA)
    request = Request(
        "e1", "contact.created", at // 1_000_000, 3, 1, origin, "https://x.example", body,
        (SECRET,), **facts,
    )  # fmt: skip
    form = EventForm(mode, cloud_events.source_of(SITE, owner))
    cloud_events.apply(request, form, record_id, at)
    return compose(request, service="Carteiro", now_wall=at, span_id=""), request.body


def as_read(headers: list[Header], body: bytes) -> dict[str, Any]:
    """Return the attributes and data as the current SDK reads them; the old one reads the same."""
    event = from_http_event(HTTPMessage(dict(headers), body))
    old = from_http(dict(headers), body)
    found = {name: value for name, value in event.get_attributes().items() if value is not None}
    found["data"] = event.get_data()
    assert (old["id"], old["source"], old["type"]) == (found["id"], found["source"], found["type"])
    assert old.data == found["data"]
    return found


@pytest.mark.parametrize("mode", MODES)
def test_the_sdks_read_the_same_event_in_both_modes(mode: Mode) -> None:
    headers, body = dressed(mode, sequence=12)
    assert as_read(headers, body) == {
        "specversion": "1.0",
        "id": "e1",
        "source": "https://crm.example/owners/a1",
        "type": "carteiro.contact.created",
        "subject": "c1",
        "time": datetime(2026, 11, 21, 14, 30, 0, 7000, UTC),
        "datacontenttype": "application/json",
        "dataschema": "https://crm.example/api/schemas/contact.created",
        "recordversion": "3",
        "sequence": "0000000000000000012",
        "data": DATA,
    }


def test_a_structured_event_has_no_context_headers() -> None:
    # The SDK for Python takes any ce- header for the binary mode, whatever the content type is.
    headers, body = dressed("cloudevents")
    assert not [name for name, _ in headers if name.lower().startswith("ce-")]
    assert dict(headers)["Content-Type"] == "application/cloudevents+json"
    assert json.loads(body)["data"] == DATA


def test_a_binary_event_is_the_data_in_the_bytes_of_the_contract() -> None:
    headers, body = dressed("cloudevents-binary")
    named = dict(headers)
    assert message("contact.created", NOW, DATA).endswith(b'"data":' + body + b"}")
    assert named["Content-Type"] == "application/json"
    assert "ce-datacontenttype" not in named, "the binding forbids it beside Content-Type"


# HTTP binding 1.0.2, section 3.1.3.2, with its own example; some SDKs read none of it back.
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Euro € 😀", "Euro%20%E2%82%AC%20%F0%9F%98%80"),
        ("100%", "100%25"),
        ('"x"', "%22x%22"),
        ("pedido-ã/1?x=1&y=[2]", "pedido-%C3%A3/1?x=1&y=[2]"),
        ("~!#$'()*+,;:@^`{|}\\", "~!#$'()*+,;:@^`{|}\\"),
        ("a\r\nb", "a%0D%0Ab"),
    ],
)
def test_header_values_are_percent_encoded(text: str, value: str) -> None:
    assert cloud_events.encoded(text) == value


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("record_id", "subject"),
    [
        ("pedido ã 100%", "pedido ã 100%"),
        # An attribute must not be empty, and has no control characters.
        ("", None),
        ("a\nb\x7f\ufffe", "ab"),
    ],
)
def test_subjects(mode: Mode, record_id: str, subject: str | None) -> None:
    assert as_read(*dressed(mode, record_id)).get("subject") == subject


@pytest.mark.parametrize(
    ("at", "time"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (NOW, "2026-11-21T14:30:00.007Z"),
        (999_999, "1970-01-01T00:00:00.999Z"),
        (253_402_300_799_999_999, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_times_are_utc_with_milliseconds(at: int, time: str) -> None:
    assert json.loads(dressed("cloudevents", at=at)[1])["time"] == time


def test_attributes_have_names_that_any_system_takes() -> None:
    headers, body = dressed("cloudevents-binary", sequence=1, snapshot="j1", origin="test")
    names = {name for name, _ in headers if name.startswith("ce-")}
    assert names | {cloud_events.SOURCE, REQUEST_ORIGIN} == OF_FORMS, "the log masks no others"
    assert all(re.fullmatch("ce-[a-z0-9]{1,20}", name) for name in names), names
    assert as_read(headers, body)["test"] == "1"


def test_sequences_compare_like_numbers() -> None:
    numbers = (9, 10, 2**53, 2**63 - 1)
    bodies = [json.loads(dressed("cloudevents", sequence=n)[1]) for n in numbers]
    texts = [body["sequence"] for body in bodies]
    assert sorted(texts) == texts


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "facts",
    [{}, {"sequence": 7}, {"sequence": 7, "repeats": True}, {"snapshot": "j1"}, {"origin": "test"}],
    ids=str,
)
def test_the_log_tells_the_bytes_that_were_sent(mode: Mode, facts: dict[str, Any]) -> None:
    headers, body = dressed(mode, "ã", owner="o/ã", **facts)
    shown = restored(json.dumps(kept(headers, EventForm(mode, "s"))), "e1", 1, NOW)
    assert sorted(shown) == sorted(headers)
    assert sent(message("contact.created", NOW, DATA), shown, "ã", NOW) == body


def test_own_headers_with_such_names_are_masked_and_make_no_cloud_event() -> None:
    """A webhook of the contract may have them: they stood in requests before the forms were."""
    body = message("contact.created", NOW, DATA)
    own = (("ce-specversion", "1.0"), ("ce-id", "hush"), ("ce-source", "/mine"))
    request = Request(
        "e1", "contact.created", NOW // 1_000_000, 3, 1, "event", "https://x.example", body,
        (SECRET,), own,
    )  # fmt: skip
    headers = compose(request, service="Carteiro", now_wall=NOW, span_id="")
    shown = restored(json.dumps(kept(headers)), "e1", 1, NOW)
    assert shown[-3:] == [(name, "***") for name, _ in own]
    assert (sent(body, shown, "c1", NOW), cloud_events.context_of(shown)) == (body, ())
