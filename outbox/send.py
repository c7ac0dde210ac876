"""One POST to a receiver, under one deadline; whatever the receiver does, it ends as an Outcome."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientConnectorSSLError,
    ClientError,
)
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.streams import EofStream, StreamReader

from outbox.clock import Clock
from outbox.egress import Guard, Refused, check_url
from outbox.wire import (
    LARGEST_BODY,
    SWITCHING_PROTOCOLS,
    Dialler,
    HeadTooLong,
    Route,
    Trail,
    Wire,
)

Name = Literal[
    "success", "throttled", "http_3xx", "http_4xx", "http_5xx", "timeout", "connect_error",
    "dns_error", "tls_error", "protocol_error", "blocked", "aborted",
]  # fmt: skip

BODY_SECONDS = 1.0
"""A body may still take this long once the head has decided the outcome."""
MOST_ROUTES = 20_000
THROTTLING = frozenset({429, 502, 503, 504})
CLOSED_EARLY = "the receiver closed the connection without an answer"
CUT_OFF = "the receiver closed the connection inside the head of its answer"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one attempt. Durations are microseconds, None where a step did not happen."""

    outcome: Name
    status: int | None
    error: str | None
    """A few words naming what went wrong; None when the status says it all."""
    retry_after: str | None
    address: str | None
    dns_us: int | None
    connect_us: int | None
    tls_us: int | None
    first_byte_us: int | None
    """From the request's last byte written to the answer's first byte read."""
    total_us: int
    response_headers: list[tuple[str, str]]
    response_body: bytes
    truncated: bool
    reused: bool


class Sender:
    """Sends for one process and keeps its connections alive between sends."""

    def __init__(self, guard: Guard, clock: Clock, tls: ssl.SSLContext | None = None) -> None:
        self._guard = guard
        self._clock = clock
        self._dialler = Dialler(guard, clock, tls)
        self._routes: OrderedDict[str, Route] = OrderedDict()

    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], body: bytes, timeout_s: float
    ) -> Outcome:
        """POST `body`. Raises ValueError for headers that cannot be sent, and nothing else.

        `headers` are all but Host and Content-Length. Cancelling it aborts the connection.
        """
        trail = Trail(self._clock.monotonic())
        try:
            route = self._route(url)
        except Refused as refused:
            return self._failed(trail, "blocked", str(refused))
        head = route.head(headers, len(body))
        trail.tls = route.is_ssl()
        answer = _Answer()
        try:
            async with asyncio.timeout(timeout_s) as limit:
                try:
                    await self._exchange(route, head, body, trail, answer, limit)
                except (ClientError, OSError):
                    if not _gone_stale(trail):
                        raise
                    # The receiver had closed an idle connection; it has seen nothing of this.
                    trail.wire = None
                    await self._exchange(route.apart(), head, body, trail, answer, limit)
        except Exception as error:  # noqa: BLE001 - whatever a receiver causes has a name
            if trail.message is None:
                return self._failed(trail, *_name(error, trail))
        return self._answered(trail, answer)

    async def close(self) -> None:
        """Close all connections and forget the look-ups that run."""
        await self._dialler.close()

    def _route(self, url: str) -> Route:
        route = self._routes.get(url)
        if route is None:
            route = self._routes[url] = Route(check_url(url, self._guard.rules))
            if len(self._routes) > MOST_ROUTES:
                self._routes.popitem(last=False)
        return route

    async def _exchange(
        self,
        route: Route,
        head: bytes,
        body: bytes,
        trail: Trail,
        answer: _Answer,
        limit: asyncio.Timeout,
    ) -> None:
        connection = await self._dialler.connect(route, trail)
        wire = cast(Wire, trail.wire)
        try:
            wire.begin()
            wire.write(head, body)
            trail.sent = self._clock.monotonic()
            message, payload = await wire.read()
            trail.message = message
            if payload.is_eof():
                answer.take_all(payload)
            else:
                ends = asyncio.get_running_loop().time() + BODY_SECONDS
                limit.reschedule(min(ends, limit.when() or ends))
                await answer.read(payload)
        finally:
            if answer.complete and not wire.should_close:
                wire.rest()
                connection.release()
            else:
                # Not close(): that would wait for a receiver that may never take our bytes.
                wire.abort()
                connection.close()

    def _answered(self, trail: Trail, answer: _Answer) -> Outcome:
        message = trail.message
        assert message is not None
        status = message.code
        name = _judge(status)
        error = None
        if name == "protocol_error" or message.version.major != 1:
            name, error = "protocol_error", _odd(status)
        now = self._clock.monotonic()
        wire = cast(Wire, trail.wire)
        return Outcome(
            name,
            status,
            error,
            message.headers.get("Retry-After"),
            wire.address,
            _duration(trail.resolved_in),
            _between(trail.dialled, trail.connected),
            _between(trail.connected, trail.secured),
            _between(trail.sent, wire.first_byte),
            round((now - trail.began) * 1_000_000),
            [(n.decode("latin-1"), v.decode("utf-8", "replace")) for n, v in message.raw_headers],
            answer.body(),
            not answer.complete,
            wire.uses > 1,
        )

    def _failed(self, trail: Trail, name: Name, error: str) -> Outcome:
        now = self._clock.monotonic()
        wire = trail.wire
        return Outcome(
            name,
            None,
            error,
            None,
            None if wire is None else wire.address,
            _duration(trail.resolved_in),
            _between(trail.dialled, trail.connected),
            _between(trail.connected, trail.secured),
            None if wire is None else _between(trail.sent, wire.first_byte),
            round((now - trail.began) * 1_000_000),
            [],
            b"",
            False,
            wire is not None and wire.uses > 1,
        )


class _Answer:
    """The body of an answer, as far as we read it."""

    __slots__ = ("_parts", "_size", "complete")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self.complete = False

    def take_all(self, payload: StreamReader) -> None:
        """Take the body of an answer that has ended already."""
        self._take(payload.read_nowait())
        self.complete = self._size <= LARGEST_BODY

    async def read(self, payload: StreamReader) -> None:
        """Take a body as it comes, until it ends or is more than we want."""
        while self._size <= LARGEST_BODY:
            part = await payload.readany()
            if not part:
                self.complete = True
                return
            self._take(part)

    def _take(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)

    def body(self) -> bytes:
        return b"".join(self._parts)[:LARGEST_BODY]


def _judge(status: int) -> Name:
    if 200 <= status < 300:
        return "success"
    if status in THROTTLING:
        return "throttled"
    if 300 <= status < 400:
        return "http_3xx"
    if 400 <= status < 500:
        return "http_4xx"
    if 500 <= status < 600:
        return "http_5xx"
    return "protocol_error"


def _odd(status: int) -> str:
    if status == SWITCHING_PROTOCOLS:
        return "the receiver switched protocols"
    return "not an HTTP/1.1 answer"


def _gone_stale(trail: Trail) -> bool:
    """Whether a kept-alive connection turned out to be closed, with no byte answered."""
    wire = trail.wire
    return wire is not None and wire.uses > 1 and not wire.received and trail.message is None


def _name(error: Exception, trail: Trail) -> tuple[Name, str]:
    """The outcome of an attempt that got no answer, and what to call it."""
    if trail.refused is not None:
        return "blocked", str(trail.refused)
    if isinstance(error, TimeoutError):
        return _late(trail)
    if trail.stage == "answer":
        return _broken(error, trail)
    if isinstance(error, ClientConnectorDNSError):
        return "dns_error", str(error.os_error)
    if isinstance(error, ClientConnectorCertificateError):
        reason = getattr(error.certificate_error, "verify_message", None)
        return "tls_error", f"certificate refused: {reason or 'it does not fit the host'}"
    if isinstance(error, ClientConnectorSSLError):
        reason = getattr(error.os_error, "reason", None) or "handshake failed"
        return "tls_error", f"TLS: {str(reason).lower().replace('_', ' ')}"
    if trail.stage == "tls":
        return "tls_error", "the receiver closed the connection inside the TLS handshake"
    if isinstance(error, ClientConnectorError):
        return "connect_error", _system(error.os_error)
    if isinstance(error, OSError):
        return "connect_error", _system(error)
    return "connect_error", f"the request failed inside: {type(error).__name__}"


def _late(trail: Trail) -> tuple[Name, str]:
    if trail.stage == "dns":
        return "dns_error", "the name servers did not answer in time"
    if trail.stage == "connect":
        return "connect_error", "no connection in time"
    if trail.stage == "tls":
        return "tls_error", "the TLS handshake did not end in time"
    return "timeout", "no answer in time"


def _broken(error: Exception, trail: Trail) -> tuple[Name, str]:
    if isinstance(error, HttpProcessingError):
        cause = error if isinstance(error, HeadTooLong) else error.__cause__
        if isinstance(cause, HeadTooLong | LineTooLong):
            return "protocol_error", "the head of the answer is too long"
        return "protocol_error", "not an HTTP/1.1 answer"
    if isinstance(error, ClientError | OSError | EofStream):
        wire = trail.wire
        if wire is not None and wire.received:
            return "protocol_error", CUT_OFF
        return "connect_error", CLOSED_EARLY
    return "protocol_error", f"the request failed inside: {type(error).__name__}"


def _system(error: OSError) -> str:
    """The system's own words, without the addresses that asyncio adds to them."""
    if error.errno is None:
        return "no connection"
    return os.strerror(error.errno).lower()


def _duration(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1_000_000)


def _between(start: float | None, end: float | None) -> int | None:
    return None if start is None or end is None else max(round((end - start) * 1_000_000), 0)
