"""Receivers on loopback with one fault each, and what a doctor must find."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import trustme
from aiohttp import web

from tests.support.process import free_port
from tests.support.receiver import Visit, hostile, receiver


@dataclass(frozen=True)
class Patient:
    """A receiver, the step that fails there (None: all pass), its outcome and some words of it."""

    name: str
    url: str
    step: str | None
    outcome: str
    says: str
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
    (204, None, "success", "answered 204 to the signed request"),
    (401, "answer", "http_4xx", "answered 401: it refused the signature"),
    (410, "answer", "http_4xx", "disables the webhook"),
    (500, "answer", "http_5xx", "answered 500: it failed"),
    (429, "answer", "throttled", "answered 429: it limits requests."),
    (503, "answer", "throttled", "answered 503: it is unavailable or overloaded."),
    (308, "answer", "http_3xx", "a redirect to http://127.0.0.1:"),
)
SCRIPTS = (
    ("hangs-up", _hangs_up, "connect_error", "closed the connection without a response"),
    ("not-http", _babbles, "protocol_error", "Not an HTTP/1.1 response"),
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
                "no-such-host.invalid: ",
            ),
            Patient(
                "refused-port", f"http://127.0.0.1:{free_port()}/", "connect", "connect_error",
                "Connection refused (tried 127.0.0.1:",
            ),
        ]  # fmt: skip
        for status, step, outcome, says in STATUSES:
            there = await stack.enter_async_context(receiver(answer=_answers(status, Location="/")))
            found.append(Patient(f"{status}", f"{there.url}/", step, outcome, says, status))
        slow = ("slow", silent, "timeout", "No response within 1 s")
        for name, script, outcome, says in (slow, *SCRIPTS):
            visited = await stack.enter_async_context(hostile(script))
            found.append(Patient(name, visited.url, "answer", outcome, says))
        secure = await stack.enter_async_context(receiver(tls=unknown))
        says = "Certificate refused: "
        found.append(Patient("bad-certificate", f"{secure.url}/", "tls", "tls_error", says))
        plain = await stack.enter_async_context(receiver())
        url = plain.url.replace("http://", "https://")
        says = "The port may serve plain http."
        found.append(Patient("plain-port", f"{url}/", "tls", "tls_error", says))
        yield found
