"""The doctor names the failing step, obeys the guard, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from outbox.clock import SystemClock
from outbox.ids import Ids
from outbox.queue.state.policy import Schedule
from outbox.sending.addresses import Rules
from outbox.sending.guard import Guard
from outbox.sending.request import Request, new_secret
from outbox.sending.send import Sender
from outbox.sending.steps import steps_of
from outbox.worker import WorkerSettings
from outbox.worker.doctor import Doctor, Examination
from tests.support.patients import patients
from tests.support.receiver import receiver
from tests.support.senders import LOOPBACK

SECRET = new_secret(b"k" * 32)
BODY = b'{"event":"thing.made","timestamp":1760000000,"data":{}}'


@asynccontextmanager
async def doctor(
    rules: Rules = LOOPBACK, look_up: Callable[[str], Sequence[str]] | None = None
) -> AsyncIterator[Doctor]:
    clock = SystemClock()
    guard = Guard(rules, clock, look_up) if look_up else Guard(rules, clock)
    checker = Doctor(guard, clock, Ids(), WorkerSettings(), Sender(guard, clock))
    try:
        yield checker
    finally:
        await checker.close()
        await guard.close()


def request(url: str, timeout_s: float = 1.0) -> Request:
    return Request(
        "e" * 24, "thing.made", 1760000000, 1, 1, "test", url, BODY, (SECRET,), timeout_s=timeout_s
    )


def verdicts_of(examination: Examination) -> list[tuple[str, str]]:
    return [(step.name, step.verdict) for step in examination.steps]


async def test_each_fault_is_named_with_its_step_and_a_sentence() -> None:
    async with patients() as all_of_them, doctor() as checker:
        for patient in all_of_them:
            examination = await checker.examine(request(patient.url))
            step = examination.failed.name if examination.failed else None
            assert examination.outcome is not None
            assert (step, examination.outcome.outcome) == (patient.step, patient.outcome), (
                patient.name
            )
            assert examination.outcome.status == patient.status
            last = examination.steps[-1]
            assert patient.says in last.text, (patient.name, last.text)
            assert all(one.verdict != "failed" for one in examination.steps[:-1])
            assert last.text[0].isupper() or last.name == "dns"
            assert last.text.endswith(".")
            measured = {one.name for one in examination.steps if one.micros is not None}
            if patient.step != "dns":
                assert "connect" in measured
            assert (last.micros is not None) or last.name == "egress"


async def test_the_request_is_that_of_a_test_event_on_a_new_connection() -> None:
    async with receiver(secret=SECRET) as there, doctor() as checker:
        first, second = [await checker.examine(request(f"{there.url}/hook")) for _ in range(2)]
        assert verdicts_of(first) == [
            ("url", "passed"), ("dns", "skipped"), ("egress", "passed"), ("connect", "passed"),
            ("tls", "skipped"), ("answer", "passed"),
        ]  # fmt: skip
        assert first.decision.state == "delivered"
        one, two = there.requests
    assert first.outcome is not None
    assert second.outcome is not None
    assert not second.outcome.reused
    assert one.peer != two.peer
    headers = dict(one.headers)
    assert headers["X-Webhook-Test"] == "1"
    assert headers["X-Webhook-Id"] == headers["webhook-id"] == "e" * 24
    assert one.body == BODY


async def test_custom_headers_are_masked_as_in_the_log() -> None:
    async with receiver() as there, doctor() as checker:
        sent = replace(request(there.url + "/"), headers=(("Authorization", "Bearer t0k3n"),))
        examination = await checker.examine(sent)
        assert dict(there.requests[0].headers)["Authorization"] == "Bearer t0k3n"
    assert ("Authorization", "***") in examination.headers
    assert "t0k3n" not in repr(examination)


@pytest.mark.parametrize(
    "addresses",
    [["10.1.2.3"], ["169.254.169.254"], ["127.0.0.1", "10.1.2.3"], ["::ffff:10.0.0.1"]],
)
async def test_a_refused_address_gets_no_connection_and_says_no_more_than_the_log(
    addresses: list[str],
) -> None:
    async with receiver() as there, doctor(look_up=lambda host: addresses) as checker:
        port = there.url.rpartition(":")[2]
        examination = await checker.examine(request(f"http://inside.example:{port}/"))
        assert there.requests == []
    assert verdicts_of(examination) == [("url", "passed"), ("dns", "passed"), ("egress", "failed")]
    assert examination.outcome is not None
    assert examination.outcome.outcome == "blocked"
    assert examination.outcome.connect_us is None
    said = " ".join(step.text for step in examination.steps)
    assert said.endswith(
        "Deliveries to this address are not allowed; allow it with the option --allow."
    )
    # Not even whether it was one address or several, and which.
    assert not any(address in said for address in addresses)


@pytest.mark.parametrize(
    ("url", "steps"),
    [
        ("ftp://x.example/", [("url", "failed")]),
        ("http://127.0.0.1:6379/", [("url", "failed")]),
        ("http://10.0.0.1:8080/", [("url", "passed"), ("egress", "failed")]),
        ("http://localhost:8080/", [("url", "passed"), ("egress", "failed")]),
        ("http://169.254.169.254/", [("url", "passed"), ("egress", "failed")]),
    ],
)
async def test_the_form_of_a_url_is_judged_before_anything_is_sent(
    url: str, steps: list[tuple[str, str]]
) -> None:
    async with doctor(Rules(allow_http=True)) as checker:
        examination = await checker.examine(request(url))
    assert verdicts_of(examination) == steps
    assert examination.outcome is not None
    assert examination.outcome.outcome == "blocked"
    if len(steps) > 1:
        host, _, port = url.removeprefix("http://").rstrip("/").partition(":")
        assert examination.steps[0].text == f"http to {host}, port {port or 80}."


async def test_a_slow_success_gets_a_warning() -> None:
    async with receiver() as there, doctor() as checker:
        quick = await checker.examine(request(there.url + "/", timeout_s=30))
    assert "respond first" not in quick.steps[-1].text
    assert quick.outcome is not None
    slow = replace(quick.outcome, first_byte_us=20_000_000)
    text = steps_of(there.url + "/", slow, LOOPBACK, 30.0)[-1].text
    assert text.endswith("It took 20.0 s of the 30 s allowed; respond first.")


async def test_what_follows_is_what_the_policy_decides() -> None:
    async with patients() as all_of_them, doctor() as checker:
        [gone] = [one for one in all_of_them if one.name == "410"]
        [down] = [one for one in all_of_them if one.name == "500"]
        assert (await checker.examine(request(gone.url))).decision.disable
        examination = await checker.examine(request(down.url), Schedule((60.0,)))
        assert (examination.decision.state, examination.decision.delay_us) == ("ready", 60_000_000)
        examination = await checker.examine(request(down.url), Schedule(()))
        assert examination.decision.state == "exhausted"
