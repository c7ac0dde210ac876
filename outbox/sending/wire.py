"""One connection to a receiver: aiohttp's own, hardened against hostile responses.

In this package only this module, connect and pool use aiohttp's private parts;
tests/outbox/sending/test_wire.py states what they must do.
"""

import asyncio
from collections.abc import Awaitable
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from typing import Literal

from aiohttp.client_proto import ResponseHandler

from outbox.clock import Clock
from outbox.sending.oddities import LARGEST_HEAD
from outbox.sending.plain_response import Head, read_plain
from outbox.sending.response import Reading
from outbox.sending.urls import Refused

Stage = Literal["dns", "connect", "proxy", "tls", "answer"]

JOINED_BODY = 64 * 1024
"""Up to this size, a body is appended to its head, to leave in one write."""

Answer = tuple[Head, Reading | None, bytes]
"""The head; then the reading that has the body, or the complete body."""


class NotHttp(Exception):
    """The receiver sent something that is not a response."""


@dataclass(slots=True)
class Progress:
    """The progress of one attempt. Times are seconds on the monotonic clock."""

    began: float
    ends: float
    late: bool = False
    tls: bool = False
    stage: Stage = "connect"
    resolved_in: float | None = None
    dialled: float | None = None
    connected: float | None = None
    secured: float | None = None
    sent: float = 0.0
    refused: Refused | None = None
    proxy: str | None = None
    """The name of the egress proxy in use."""
    tried: dict[str, str] | None = None
    """The places that were connected to, each with why it failed, or empty."""
    asked: bool = False
    """Whether the receiver asks for a client certificate, and the webhook has none."""
    wire: "Wire | None" = None
    head: Head | None = None
    body: bytes = b""
    complete: bool = False


current: ContextVar[Progress] = ContextVar("current")
"""The attempt of the current task."""


class Wire(ResponseHandler):
    """One connection to a receiver."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        super().__init__(loop)
        self.address: str | None = None
        self.uses = 0
        self.received = 0
        """Received bytes of the current response."""
        self.first_byte: float | None = None
        self.retires = inf
        """When it is too old for another request, on the monotonic clock."""
        self.reading: Reading | None = None
        """What is read of the current response, unless it is a plain one."""
        self._clock = clock
        self._idle = False
        self._answered = False
        self._early = b""
        self._waiting: asyncio.Future[None] | None = None
        progress = current.get()
        # Connectors create this object after the TCP handshake and before TLS.
        progress.connected = clock.monotonic()
        progress.stage = "tls" if progress.tls else "connect"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        if peer:
            host, port = peer[:2]
            self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def begin(self) -> None:
        """Prepare for the next request."""
        self.uses += 1
        self.received = 0
        self.first_byte = None
        self._idle = self._answered = False
        # Created when a response arrives that needs it.
        self.reading = None
        if self._early:
            data, self._early = self._early, b""
            self.reading = Reading()
            self.reading.odd("early")
            self.data_received(data)

    def answer(self) -> Awaitable[Answer]:
        """Return the final response to the request. Raise the error that ended the connection."""
        return self.read()  # type: ignore[return-value] # what `_hand_over` put there

    def write(self, head: bytes, body: bytes) -> None:
        """Send a request. Raise ConnectionResetError when the connection is closed already."""
        transport = self.transport
        if transport is None or transport.is_closing():
            # What came before the request may say why.
            fault = self.exception()
            raise fault if isinstance(fault, NotHttp) else ConnectionResetError
        if len(body) <= JOINED_BODY:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)

    def rest(self) -> None:
        """Mark the response as read; until the next request no data may arrive."""
        self._idle = True
        self.reading = None

    def data_received(self, data: bytes) -> None:
        if self._idle:
            # A response without a request would be taken for the response to the next request.
            self._abort()
            return
        if not self.uses:
            self._early += data
            if len(self._early) > LARGEST_HEAD:
                self._abort()
            return
        if self.first_byte is None:
            self.first_byte = self._clock.monotonic()
        self.received += len(data)
        reading = self.reading
        if reading is None:
            if self._answered:
                self.force_close()
                return
            plain = read_plain(data)
            if plain is not None:
                self._hand_over(plain[0], None, plain[1])
                return
            reading = self.reading = Reading()
        reading.feed(data)
        self._follow(reading)

    def connection_lost(self, exc: BaseException | None) -> None:
        reading = self.reading
        if reading is not None:
            reading.lose(cleanly=exc is None)
            self._follow(reading)
        super().connection_lost(exc)

    async def body(self, reading: Reading) -> None:
        """Wait until nothing more of the body is read."""
        if not reading.ended:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting

    def _follow(self, reading: Reading) -> None:
        """Hand over what has been read."""
        if reading.closes:
            self.force_close()
        if not self._answered:
            if reading.head is not None:
                self._hand_over(reading.head, reading, b"")
            elif reading.refusal is not None:
                self._answered = True
                self.set_exception(NotHttp(reading.refusal))
                self._abort()
        if reading.ended and self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _hand_over(self, head: Head, reading: Reading | None, body: bytes) -> None:
        self._answered = True
        # aiohttp's queue of responses carries this one.
        self.feed_data((head, reading, body))  # type: ignore[arg-type] # see `answer`

    def _abort(self) -> None:
        # Not self.abort(), which discards the exception for the reader.
        if self.transport is not None:
            self.transport.abort()
