"""The doctor names the failing step, obeys the guard, and leaves nothing behind."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

import pytest
import trustme
from aiohttp import web

from outbox.clock import SystemClock
from outbox.ids import Ids
from outbox.sending.addresses import Rules
from outbox.sending.egress_guard import Guard
from outbox.sending.explained import steps_of
from outbox.sending.request import Request, new_secret
from outbox.sending.send import Sender
from outbox.worker import WorkerSettings
from outbox.worker.examination import Doctor, Examination
from tests.support.process import free_port
from tests.support.receiver import Visit, hostile, receiver
from tests.support.senders import LOOPBACK


@dataclass(frozen=True)
class Patient:
    """A receiver, the step that fails there (None: all pass), its outcome, code and a value."""

    name: str
    url: str
    step: str | None
    outcome: str
    code: str
    value: str = ""
    """Stands in a value of the code."""
    status: int | None = None


async def _hangs_up(visit: Visit) -> None:
    await visit.request()


async def _babbles(visit: Visit) -> None:
    await visit.reply(b"220 smtp.example ESMTP\r\n")


def _answers(status: int, **headers: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, headers=headers)

    return answer


STATUSES = (
    (204, None, "success", "answered"),
    (401, "answer", "http_4xx", "unsigned"),
    (410, "answer", "http_4xx", "gone"),
    (500, "answer", "http_5xx", "broken"),
    (429, "answer", "throttled", "limited"),
    (503, "answer", "throttled", "unavailable"),
    (308, "answer", "http_3xx", "redirect_to"),
)
SCRIPTS = (
    ("hangs-up", _hangs_up, "connect_error", "failed", "closed the connection without a response"),
    ("not-http", _babbles, "protocol_error", "failed", "not an HTTP/1.1 response"),
)


@asynccontextmanager
async def patients(stall: Callable[[], None] = lambda: None) -> AsyncIterator[list[Patient]]:
    """Run a receiver for each fault. Their webhooks need a timeout of one second.

    `stall` is called when a receiver does not answer, and may move a clock.
    """

    async def silent(visit: Visit) -> None:
        await visit.request()
        stall()
        await visit.gone()

    unknown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(unknown)
    async with AsyncExitStack() as stack:
        found = [
            Patient(
                "no-host", "http://no-such-host.invalid:8080/", "dns", "dns_error",
                "failed_host",
            ),
            Patient(
                "refused-port", f"http://127.0.0.1:{free_port()}/", "connect", "connect_error",
                "failed", "connection refused (tried 127.0.0.1:",
            ),
        ]  # fmt: skip
        for status, step, outcome, code in STATUSES:
            there = await stack.enter_async_context(receiver(answer=_answers(status, Location="/")))
            found.append(Patient(f"{status}", f"{there.url}/", step, outcome, code, status=status))
        slow = ("slow", silent, "timeout", "late", "1")
        for name, script, outcome, code, value in (slow, *SCRIPTS):
            visited = await stack.enter_async_context(hostile(script))
            found.append(Patient(name, visited.url, "answer", outcome, code, value))
        secure = await stack.enter_async_context(receiver(tls=unknown))
        value = "certificate refused: "
        found.append(
            Patient("bad-certificate", f"{secure.url}/", "tls", "tls_error", "failed", value)
        )
        plain = await stack.enter_async_context(receiver())
        url = plain.url.replace("http://", "https://")
        found.append(Patient("plain-port", f"{url}/", "tls", "tls_error", "failed_plain"))
        yield found


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


@pytest.mark.slow
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
            assert last.code == patient.code, (patient.name, last)
            assert patient.value in " ".join(last.values.values()), (patient.name, last)
            assert all(one.verdict != "failed" for one in examination.steps[:-1])
            measured = {one.name for one in examination.steps if one.micros is not None}
            if patient.step != "dns":
                assert "connect" in measured
            assert (last.micros is not None) or last.name == "egress"


@pytest.mark.parametrize(
    "addresses", [["10.1.2.3"], ["169.254.169.254"], ["127.0.0.1", "10.1.2.3"], ["::ffff:10.0.0.1"]]
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
    assert examination.steps[-1].values == {
        "error": "deliveries to this address are not allowed; allow it with the option --allow"
    }
    said = " ".join(value for step in examination.steps for value in step.values.values())
    # Not even whether it was one address or several, and which.
    assert not any(address in said for address in addresses)


@pytest.mark.parametrize(
    ("location", "named"),
    [
        ("https://new.example/hook?a=%2F", "https://new.example/hook?a=%2F"),
        ("/other", "{url}/other"), ("x?y=1", "{url}/x?y=1"),
        ("//b.example", "http://b.example"), ("http://[", "http://["),
        ("https://b.example/a b\x1b[2Jç",
         "https://b.example/a%20b%1B[2J%C3%A7"),
        ("https://b.example/" + "x" * 999, "https://b.example/" + "x" * 282 + "…"),
        (" ", ""), (None, ""),
    ],
)  # fmt: skip
async def test_the_target_of_a_redirect_is_named(location: str | None, named: str) -> None:
    head = "HTTP/1.1 301 Moved\r\nContent-Length: 0\r\n"
    head += "\r\n" if location is None else f"Location: {location}\r\n\r\n"

    async def answer(visit: Visit) -> None:
        await visit.reply(head.encode())

    async with hostile(answer) as there, doctor() as checker:
        examination = await checker.examine(request(there.url))
    url = there.url.removesuffix("/hook")
    last = examination.steps[-1]
    assert (last.code, last.values.get("place", "")) == (
        "redirect_to" if named else "redirect", named.format(url=url),
    )  # fmt: skip


async def test_a_slow_success_gets_a_warning() -> None:
    async with receiver() as there, doctor() as checker:
        quick = await checker.examine(request(there.url + "/", timeout_s=30))
    assert quick.steps[-1].code == "answered"
    assert quick.outcome is not None
    slow = replace(quick.outcome, first_byte_us=20_000_000)
    last = steps_of(there.url + "/", slow, LOOPBACK, 30.0)[-1]
    assert (last.code, last.values) == (
        "answered_slowly", {"status": "200", "took": "20.0", "most": "30"},
    )  # fmt: skip
