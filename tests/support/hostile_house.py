"""Every hostile receiver at once, in a process of its own.

Run as a module, this is the process: it prints the URL of each mode, as JSON.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import ssl
from contextlib import AsyncExitStack
from dataclasses import dataclass

import trustme

from tests.support.hostilities import (
    BROKEN,
    BROKEN_OFF,
    EMPTY,
    ENDLESS,
    GOOD_HEAD_BAD_BODY,
    OK,
    repeats,
    says,
    says_and_resets,
    silence,
)
from tests.support.receiver import Script, Visit, hostile

FINE = "fine"


@dataclass(frozen=True)
class Mode:
    """A way to be hostile, and how its attempts may end."""

    script: Script
    outcomes: frozenset[str]
    tls: str = ""
    """Speak TLS with this certificate: `unknown` or `expired`; `none`: nobody speaks it."""


def _status(status: int, *headers: str) -> Script:
    lines = "".join(f"{header}\r\n" for header in headers)
    return says(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n{lines}\r\n".encode())


async def _leave(visit: Visit) -> None:
    """Close on accept."""


async def _reset(visit: Visit) -> None:
    visit.reset()


async def _deaf(visit: Visit) -> None:
    await asyncio.Event().wait()


def modes() -> dict[str, Mode]:
    """Return each mode by its name; the first is no hostile one."""
    found: dict[str, Mode] = {FINE: Mode(says(EMPTY), frozenset({"success"}))}

    def add(name: str, script: Script, *outcomes: str, tls: str = "") -> None:
        found[name] = Mode(script, frozenset(outcomes), tls)

    for name, script in BROKEN.items():
        # What has no end may also end with the deadline on a busy machine.
        late = ("timeout",) if "for ever" in name or "endless" in name else ()
        add(name, script, "protocol_error", *late)
    for name, script in BROKEN_OFF.items():
        add(name, script, "success")
    for name, data in GOOD_HEAD_BAD_BODY.items():
        add(name, says(data), "success")
    for name, (head, part) in ENDLESS.items():
        add(name, repeats(head, part), "success")
    add("reset after a head", says_and_resets(OK + b"Content-Length: 9\r\n\r\nhalf"), "success")
    add("dripping body", repeats(OK + b"Content-Length: 100000\r\n\r\n", b".", 0.05), "success")
    add("never answers", silence, "timeout")
    add("never reads", _deaf, "timeout")
    add("dripping head", repeats(OK, b"X: y\r\n", 0.5), "timeout")
    add("one hint", says(b"HTTP/1.1 103 Early Hints\r\n\r\n"), "timeout")
    add("closes", _leave, "connect_error")
    add("resets", _reset, "connect_error")
    for status in (301, 302, 303, 307, 308):
        add(f"{status}", _status(status, "Location: /again"), "http_3xx")
    add("gopher", _status(302, "Location: gopher://127.0.0.1:70/"), "http_3xx")
    for asked in ("5", "Wed, 21 Oct 2099 07:28:00 GMT", "1000000000", "-1", "garbage"):
        add(f"429 {asked}", _status(429, f"Retry-After: {asked}"), "throttled")
        add(f"503 {asked}", _status(503, f"Retry-After: {asked}"), "throttled")
    add("410", _status(410), "http_4xx")
    add("unknown authority", says(EMPTY), "tls_error", tls="unknown")
    add("expired", says(EMPTY), "tls_error", tls="expired")
    add("no TLS", says(EMPTY), "tls_error", tls="none")
    add("stalled handshake", _deaf, "tls_error", "timeout", tls="none")
    return found


def _certificates() -> dict[str, ssl.SSLContext]:
    authority, now = trustme.CA(), datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    made = {
        "unknown": authority.issue_cert("127.0.0.1"),
        "expired": authority.issue_cert("127.0.0.1", not_before=now - 9 * day, not_after=now - day),
    }
    contexts = {}
    for name, certificate in made.items():
        contexts[name] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(contexts[name])
    return contexts


async def _main() -> None:
    # Receivers are on other machines: they take no processor from the product.
    os.nice(19)
    certificates = _certificates()
    # Handshakes that a sender ends are part of the play.
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    async with AsyncExitStack() as stack:
        urls = {}
        for name, mode in modes().items():
            there = await stack.enter_async_context(
                hostile(mode.script, certificates.get(mode.tls))
            )
            urls[name] = there.url.replace("http:", "https:") if mode.tls else there.url
        print(json.dumps(urls), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main())
