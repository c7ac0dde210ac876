"""The parts of the demo: the receiver's checks, the faults, the table."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest

from gateway.cli.demo import table
from gateway.cli.demo.demo_gateway import Page
from gateway.cli.demo.receiver import Inbox, Receiver
from outbox.clock import SystemClock
from outbox.sending.request import sign_body, sign_standard

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = msgspec.json.encode({"event": "contact.created", "timestamp": 1, "data": {"id": "a1"}})


def inbox(fail_every: int = 0) -> Inbox:
    return Inbox("box", ("contact.created",), "tests", secret=SECRET, fail_every=fail_every)


def signed(body: bytes = BODY, *, event_id: str = "e1", attempt: int = 1) -> dict[str, str]:
    now = SystemClock().wall() // 1_000_000
    return {
        "X-Webhook-Id": event_id,
        "X-Webhook-Attempt": str(attempt),
        "X-Webhook-Signature": sign_body(SECRET, body),
        "webhook-id": event_id,
        "webhook-timestamp": str(now),
        "webhook-signature": sign_standard([SECRET], event_id, now, body),
    }


class Post:
    """A sender to one inbox of a running receiver."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self.http, self.url = http, url

    async def __call__(self, headers: dict[str, str], body: bytes = BODY) -> int:
        try:
            async with self.http.post(self.url, data=body, headers=headers) as answer:
                return answer.status
        except aiohttp.ClientError:
            return 0


async def receiving(box: Inbox) -> AsyncIterator[Post]:
    receiver = Receiver([box], SystemClock())
    port = await receiver.start()
    try:
        async with aiohttp.ClientSession() as http:
            yield Post(http, f"http://127.0.0.1:{port}/{box.name}")
    finally:
        await receiver.stop()


@pytest.mark.parametrize(
    "change",
    [
        {"X-Webhook-Signature": "sha256=" + "0" * 64},
        {"webhook-signature": "v1,AAAA"},
        {"webhook-timestamp": "1"},
        {"webhook-id": "e2"},
        {"X-Webhook-Attempt": ""},
    ],
)
async def test_a_bad_signature_is_refused_and_reported(change: dict[str, str]) -> None:
    box = inbox()
    headers = {name: value for name, value in (signed() | change).items() if value}
    async for post in receiving(box):
        assert await post(headers) == 401
        # Nor does another body have the signature.
        assert await post(signed(), BODY.replace(b"a1", b"a2")) == 401
    assert box.accepted == {}
    assert len(table.faults([box], [])) == 2
    # Only subscribed events are due.
    written = [("contact.created", "1"), ("company.created", "2")]
    assert table.due(box, written) == {("contact.created", "1")}


async def test_a_test_event_is_verified_and_counts_as_nothing() -> None:
    box = inbox(fail_every=1)
    test = signed() | {"X-Webhook-Test": "1"}
    async for post in receiving(box):
        assert await post(test) == 200
        # Some of the events that certify a receiver are badly signed.
        assert await post(test | {"webhook-signature": "v1,AAAA"}) == 401
    assert (box.accepted, box.refused, box.retries, box.verified) == ({}, 0, 0, 0)
    assert table.faults([box], []) == []


async def test_it_refuses_once_on_purpose_and_accepts_the_retry() -> None:
    box = inbox(fail_every=1)
    expected = []
    async for post in receiving(box):
        answers = []
        for number in range(3):
            body = BODY.replace(b"a1", b"r%d" % number)
            expected.append(("contact.created", f"r{number}"))
            answers.append(await post(signed(body, event_id=f"e{number}"), body))
            assert await post(signed(body, event_id=f"e{number}", attempt=2), body) == 200
    assert sorted(answers) == [0, 500, 503]
    assert (box.refused, box.retries, box.verified) == (3, 3, 6)
    assert table.faults([box], expected) == []


async def test_duplicate_missing_and_unexpected_events_are_faults() -> None:
    box = inbox()
    async for post in receiving(box):
        await post(signed())
        await post(signed())
    found = table.faults([box], [("contact.created", "other")])
    assert [fault.split(": ", 1)[1] for fault in found] == [
        "contact.created of other never arrived",
        "contact.created of a1 is unexpected",
        "event e1 arrived 2 times",
    ]


def test_the_table_is_aligned_and_counts() -> None:
    box = inbox()
    box.accepted["e"] = 1
    box.arrived["contact.created", "a"] = "e"
    header, line = table.rows([box], [("contact.created", "a"), ("contact.created", "b")])
    told = dict(zip(header.split(), line.split(), strict=True))
    assert (told["arrived"], told["waiting"]) == ("1", "1")
    assert len(header) == len(line)


def test_totals_count_missing_events_as_lost_only_after_the_wait() -> None:
    box = inbox(fail_every=2)
    box.accepted["e"] = 1
    box.arrived["contact.created", "a"] = "e"
    box.refused, box.retries = 3, 2
    expected = [("contact.created", "a"), ("contact.created", "b")]

    def told(**given: Any) -> dict[str, int]:
        _, *lines = table.totals([box], expected, 8.04, **given)
        cells = [line.partition("(")[0].rsplit(maxsplit=1) for line in lines]
        return {name.strip(): int(count) for name, count in cells}

    counts = {"events written": 2, "deliveries accepted": 1, "attempts failed": 3,
              "retries": 2, "bad signatures": 0}  # fmt: skip
    assert told(waited=True) == counts | {"lost": 1}
    assert told(waited=False) == counts | {"lost": 0, "still waiting": 1}
    assert told(unfinished=1) == counts | {"lost": 0, "still waiting": 1}
    assert told(kept_back=1) == counts | {"lost": 0, "kept back by you": 1}
    assert table.totals([box], expected, 8.04)[0] == "Totals after 8.0 s"
    assert table.faults([box], expected) == ["box: contact.created of b never arrived"]
    assert table.faults([box], expected, complete=False) == []
    assert table.faults([box], expected, excused=[("box", "contact.created", "b")]) == []


def test_without_a_terminal_a_line_is_written_at_most_once_a_second() -> None:
    out = io.StringIO()
    screen = table.Screen(out)
    for line in ("00:01   1 writes", "00:01   2 writes", "00:02   3 writes"):
        screen.draw(["heading"], [inbox()], [], line)
    assert out.getvalue().splitlines() == ["heading", "00:01   1 writes", "00:02   3 writes"]


def test_a_page_is_parsed_for_token_forms_and_marked_texts() -> None:
    page = Page.read(
        '<form action="/console/webhooks"><input type="hidden" name="csrf_token" value="t&amp;k">'
        '</form><code data-testid="webhook-secret"> whsec_x </code><p>after</p>'
        '<input data-testid="api-key" value="crt_y">'
    )
    assert page.csrf_token == "t&k"
    assert page.forms == {"/console/webhooks"}
    assert page.texts == {"webhook-secret": "whsec_x", "api-key": "crt_y"}
