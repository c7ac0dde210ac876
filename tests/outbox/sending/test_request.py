"""The headers of an attempt, and the custom headers of a webhook."""

import time
from dataclasses import replace

import pytest
from standardwebhooks import Webhook

from outbox.sending.request import (
    OF_FORMS,
    OURS,
    Request,
    check_header,
    check_headers,
    child_of,
    compose,
    masked,
    new_secret,
    sign_body,
    sign_standard,
)

SECRET = new_secret(b"\x01" * 32)

STAGED = new_secret(b"\x02" * 32)
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SPAN = "00f067aa0ba902b7"
BODY = b'{"event":"contact.created","timestamp":1760000000,"data":{}}'
WALL = 1_760_000_100_000_000
PLAIN = Request(
    event_id="0197f0c0ffee0123456789ab",
    event_name="contact.created",
    timestamp=1_760_000_000,
    record_version=3,
    attempt=2,
    origin="event",
    url="https://example.com/hook",
    body=BODY,
    secrets=(SECRET,),
)


def composed(request: Request, wall: int = WALL) -> list[tuple[str, str]]:
    return compose(request, service="Carteiro", now_wall=wall, span_id=SPAN)


def test_every_header_of_a_delivery() -> None:
    assert composed(PLAIN) == [
        ("Content-Type", "application/json"),
        ("X-Webhook-Event", "contact.created"),
        ("X-Webhook-Timestamp", "1760000000"),
        ("X-Webhook-Signature", sign_body(SECRET, BODY)),
        ("User-Agent", "Carteiro-Webhook/1.0"),
        ("X-Webhook-Id", "0197f0c0ffee0123456789ab"),
        ("X-Webhook-Attempt", "2"),
        ("X-Webhook-Record-Version", "3"),
        ("webhook-id", "0197f0c0ffee0123456789ab"),
        ("webhook-timestamp", str(WALL // 1_000_000)),
        ("webhook-signature", sign_standard([SECRET], PLAIN.event_id, WALL // 1_000_000, BODY)),
    ]


def test_a_test_event_says_so_and_others_do_not() -> None:
    assert ("X-Webhook-Test", "1") in composed(replace(PLAIN, origin="test"))
    for origin in ("event", "replay"):
        assert "X-Webhook-Test" not in dict(composed(replace(PLAIN, origin=origin)))


def test_only_a_numbered_delivery_tells_its_number() -> None:
    plain = composed(PLAIN)
    numbered = composed(replace(PLAIN, sequence=7))
    assert [one for one in numbered if one not in plain] == [("X-Webhook-Sequence", "7")]
    again = composed(replace(PLAIN, sequence=7, repeats=True))
    assert [one for one in again if one not in numbered] == [("X-Webhook-Replay", "1")]


def test_a_staged_secret_signs_in_the_trio_alone() -> None:
    # The library refuses timestamps older than five minutes, and a test run may be older.
    now = time.time_ns() // 1000
    headers = dict(composed(replace(PLAIN, secrets=(SECRET, STAGED)), now))
    assert headers["X-Webhook-Signature"] == sign_body(SECRET, BODY)
    first, _second = headers["webhook-signature"].split(" ")
    assert first == dict(composed(PLAIN, now))["webhook-signature"]
    for secret in (SECRET, STAGED):
        Webhook(secret).verify(BODY, headers)


@pytest.mark.parametrize(
    "traceparent",
    [
        "",
        "01" + TRACE[2:],
        TRACE.upper(),
        TRACE + "-00",
        TRACE + "\n",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "x\r\nInjected: 1",
    ],
)
def test_a_malformed_trace_is_left_out(traceparent: str) -> None:
    assert "traceparent" not in dict(composed(replace(PLAIN, traceparent=traceparent)))
    assert child_of(TRACE, "not a span") is None


def test_custom_headers_are_sent_and_masked_in_the_log() -> None:
    own = (("Authorization", "Bearer s3cret"), ("X-Shop", "7"))
    headers = composed(replace(PLAIN, headers=own))
    assert headers[-2:] == list(own)
    logged = masked(headers)
    assert logged[-2:] == [("Authorization", "***"), ("X-Shop", "***")]
    assert logged[:-2] == headers[:-2]


def test_a_delivery_of_a_snapshot_names_its_job_and_others_do_not() -> None:
    assert ("X-Webhook-Snapshot", "a" * 24) in composed(replace(PLAIN, snapshot="a" * 24))
    assert "X-Webhook-Snapshot" not in dict(composed(PLAIN))


def test_our_own_headers_are_not_masked() -> None:
    whole = replace(
        PLAIN, origin="test", traceparent=TRACE, sequence=7, repeats=True, snapshot="0" * 24,
        record_url="https://crm.example/api/x/1",
    )  # fmt: skip
    headers = composed(whole)
    assert {name for name, _ in headers} == OURS - OF_FORMS
    assert masked(headers) == headers


@pytest.mark.parametrize(
    "name",
    [
        "Connection", "keep-alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
        "Proxy-Authorization", "Proxy-Connection", "Host", "Content-Length", "content-type",
        "Content-Encoding", "Expect", "User-Agent", "traceparent", "tracestate", "X-Webhook-Id",
        "x-webhook-anything", "Webhook-Signature", "webhook-whatever", "X-Forwarded-For",
        "Forwarded",
    ],
)  # fmt: skip
def test_reserved_names_are_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        check_header(name, "value")


# A webhook in the form of the contract may have `ce-` headers of its own, as it always could.
@pytest.mark.parametrize("name", sorted(name for name in OURS if not name.startswith("ce-")))
def test_no_custom_header_can_imitate_ours(name: str) -> None:
    for spelling in (name, name.upper(), name.lower()):
        with pytest.raises(ValueError):
            check_header(spelling, "value")


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\r\nb", "ação", "a\0", "n" * 65, "(x)"])
def test_malformed_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError):
        check_header(name, "value")


@pytest.mark.parametrize(
    "value", ["", " a", "a ", "a\r\nX: 1", "a\nb", "a\0b", "a\x7fb", "ação", "v" * 1025]
)
def test_malformed_values_are_refused(value: str) -> None:
    with pytest.raises(ValueError, match="X-Own"):
        check_header("X-Own", value)


def test_a_webhook_has_at_most_ten_each_once() -> None:
    ten = [(f"X-Own-{n}", "v") for n in range(10)]
    check_headers(ten)
    with pytest.raises(ValueError, match="at most 10"):
        check_headers([*ten, ("X-Own-10", "v")])
    with pytest.raises(ValueError, match="twice"):
        check_headers([("X-Own", "1"), ("x-own", "2")])
    with pytest.raises(ValueError, match="Host"):
        check_headers([("Host", "example.com")])
