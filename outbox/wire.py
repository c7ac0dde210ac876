"""Our side of aiohttp's connector: the connection, the request it carries, and what is timed.

aiohttp keeps the pool, dials, speaks TLS and parses; a ClientSession above it would cost more
than everything else in a send. What aiohttp leaves open to a hostile receiver is closed here.
The parts of aiohttp that are not its public face are used in this file alone, and
tests/outbox/test_wire.py says what is expected of them.
"""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast

from aiohttp import ClientRequest, ClientTimeout, TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.helpers import _EXC_SENTINEL, EMPTY_BODY_STATUS_CODES
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import RawResponseMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from outbox.clock import Clock
from outbox.egress import Guard, Refused, Target

Stage = Literal["dns", "connect", "tls", "answer"]

CONNECT_SECONDS = 5.0
KEEP_ALIVE_SECONDS = 15.0
LARGEST_BODY = 16 * 1024
LARGEST_HEAD = 64 * 1024
"""Bytes that a receiver may send before the head of its final answer is complete."""
JOINED_BODY = 64 * 1024
"""Up to here a body is copied behind its head, to leave in one write."""
SWITCHING_PROTOCOLS = 101
FRESH_KEY = 1

CONNECT = ClientTimeout(connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS)


class HeadTooLong(HttpProcessingError):
    """The receiver went on without ever completing the head of a final answer."""


@dataclass(slots=True)
class Trail:
    """How far one attempt has come. Instants are seconds on the monotonic clock."""

    began: float
    tls: bool = False
    stage: Stage = "connect"
    resolved_in: float | None = None
    dialled: float | None = None
    connected: float | None = None
    secured: float | None = None
    sent: float = 0.0
    refused: Refused | None = None
    wire: "Wire | None" = None
    message: RawResponseMessage | None = None


_trail: ContextVar[Trail] = ContextVar("trail")


class Wire(ResponseHandler):
    """One connection to a receiver."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        super().__init__(loop)
        self.address: str | None = None
        self.uses = 0
        self.received = 0
        """Bytes of the current answer."""
        self.first_byte: float | None = None
        self._clock = clock
        self._idle = False
        self._answered = False
        self._opening = b""
        trail = _trail.get()
        # Connectors make this object when TCP is up, before TLS begins.
        trail.connected = clock.monotonic()
        trail.stage = "tls" if trail.tls else "connect"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        if peer:
            host, port = peer[:2]
            self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def begin(self) -> None:
        """A request is about to be written."""
        self.uses += 1
        self.received = 0
        self.first_byte = None
        self._idle = self._answered = False
        self._opening = b""
        self._set_params()

    def write(self, head: bytes, body: bytes) -> None:
        """Send a request. Raises ConnectionResetError when the connection is gone already."""
        transport = self.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError
        if len(body) <= JOINED_BODY:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)

    def rest(self) -> None:
        """The answer is read; until the next request nothing may arrive here."""
        self._idle = True

    def data_received(self, data: bytes) -> None:
        if self._idle:
            # An answer to nothing would be taken for the answer to the next request.
            self._abort()
            return
        if self.first_byte is None and data:
            self.first_byte = self._clock.monotonic()
        self.received += len(data)
        if self._answered:
            super().data_received(data)
            return
        self._opening += data
        super().data_received(data)
        if not self._answered and self.received > LARGEST_HEAD:
            self.set_exception(HeadTooLong())
            self._abort()

    def resume_reading(self, resume_parser: bool = True) -> None:
        # Called at the end of every body, where there is mostly nothing to resume.
        if self._reading_paused or self._buffer_paused:
            super().resume_reading(resume_parser)

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        status = data[0].code
        if 100 <= status < 200 and status != SWITCHING_PROTOCOLS:
            return
        self._answered = True
        self._opening = b""
        super().feed_data(data, size)

    def set_exception(self, exc: BaseException, exc_cause: BaseException = _EXC_SENTINEL) -> None:
        if isinstance(exc, HttpProcessingError) and not self._answered and self._salvage():
            return
        super().set_exception(exc, exc_cause)

    def _salvage(self) -> bool:
        """Whether a good head came before what the parser choked on; then it is the answer.

        The parser gives up heads together with the bad body that arrived behind them.
        """
        rest, self._opening = self._opening, b""
        self._set_params()
        parser = self._parser
        assert parser is not None
        try:
            while not self._answered:
                head, end, rest = rest.partition(b"\r\n\r\n")
                if not end:
                    return False
                for message, payload in parser.feed_data(head + end)[0]:
                    self._payload = payload
                    empty = message.code in EMPTY_BODY_STATUS_CODES
                    self.feed_data((message, EMPTY_PAYLOAD if empty else payload))
            # What is good of the body goes to the reader; connection_lost tells it of the rest.
            parser.feed_data(rest)
        except HttpProcessingError:
            self.force_close()
        return self._answered

    def _set_params(self) -> None:
        self.set_response_params(
            read_until_eof=True, auto_decompress=False, read_bufsize=LARGEST_BODY
        )

    def _abort(self) -> None:
        # Not self.abort(): that forgets the exception which the reader is to see.
        if self.transport is not None:
            self.transport.abort()


class Route:
    """Where requests to one URL go: what a connector asks of a request, and the head's start."""

    __slots__ = ("_start", "connection_key", "host", "port", "url")

    proxy = None
    proxy_headers = None
    server_hostname = None
    ssl = True

    def __init__(self, target: Target) -> None:
        self.url = target.url
        self.host = target.host
        self.port = target.port
        self.connection_key = ConnectionKey(
            target.host, target.port, target.scheme == "https", True, None, None, None
        )
        self._start = (
            f"POST {target.url.raw_path_qs} HTTP/1.1\r\n"
            f"Host: {target.url.host_port_subcomponent}\r\n"
            "Content-Length: "
        )

    def is_ssl(self) -> bool:
        return self.connection_key.is_ssl

    def apart(self) -> "Route":
        """The same place under a key of its own, so that no pooled connection is taken."""
        route = Route.__new__(Route)
        route.url, route.host, route.port, route._start = (
            self.url, self.host, self.port, self._start
        )  # fmt: skip
        route.connection_key = self.connection_key._replace(proxy_headers_hash=FRESH_KEY)
        return route

    def head(self, headers: Sequence[tuple[str, str]], length: int) -> bytes:
        """The request's head. Raises ValueError for a header that would break out of its line."""
        lines = "\r\n".join([f"{name}: {value}" for name, value in headers])
        breaks = len(headers) - 1
        if lines.count("\n") != breaks or lines.count("\r") != breaks or "\0" in lines:
            raise ValueError("a header holds a line break")
        return f"{self._start}{length}\r\n{lines}\r\n\r\n".encode("ascii")


class Dialler(AbstractResolver):
    """Connections to where the guard allows, each step noted on the trail of its attempt."""

    def __init__(self, guard: Guard, clock: Clock, tls: ssl.SSLContext | None) -> None:
        self._guard = guard
        self._clock = clock
        self._connector = TCPConnector(
            limit=0,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            # The guard remembers, and judges anew for each connection.
            use_dns_cache=False,
            resolver=self,
            socket_factory=self._open_socket,
            ssl=True if tls is None else tls,
        )
        # aiohttp has no parameter for this one.
        made_of = cast("partial[ResponseHandler]", partial(Wire, clock=clock))
        self._connector._factory = partial(made_of, loop=asyncio.get_running_loop())

    async def connect(self, route: Route, trail: Trail) -> Connection:
        """A connection, pooled or new, with its Wire on the trail."""
        token = _trail.set(trail)
        try:
            connection = await self._connector.connect(cast(ClientRequest, route), [], CONNECT)
        finally:
            _trail.reset(token)
        wire = cast(Wire, connection.protocol)
        if trail.connected is not None and trail.tls:
            trail.secured = self._clock.monotonic()
        trail.wire = wire
        trail.stage = "answer"
        return connection

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        trail = _trail.get()
        trail.stage = "dns"
        began = self._clock.monotonic()
        try:
            found = await self._guard.resolve(host, port, family)
        except Refused as refused:
            trail.refused = refused
            raise
        finally:
            trail.resolved_in = self._clock.monotonic() - began
        trail.stage = "connect"
        return found

    def _open_socket(self, address_info: tuple[Any, ...]) -> socket.socket:
        trail = _trail.get()
        if trail.dialled is None:
            trail.dialled = self._clock.monotonic()
        try:
            return self._guard.open_socket(address_info)
        except Refused as refused:
            trail.refused = refused
            raise

    async def close(self) -> None:
        """Close the pool. Also aiohttp's own way to tell a resolver that it goes."""
        if not self._connector.closed:
            await self._connector.close()
