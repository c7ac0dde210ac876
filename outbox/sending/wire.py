"""One connection to a receiver: aiohttp's own, hardened against hostile responses.

In this package only this module and connect use aiohttp's private parts;
tests/outbox/sending/test_wire.py states what they must do.
"""

import asyncio
import re
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, NamedTuple, cast

from aiohttp.client_proto import ResponseHandler
from aiohttp.helpers import _EXC_SENTINEL, EMPTY_BODY_STATUS_CODES
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import RawResponseMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from outbox.clock import Clock
from outbox.sending.urls import Refused

Stage = Literal["dns", "connect", "proxy", "tls", "answer"]
Header = tuple[str, str]

LARGEST_PLAIN = 16 * 1024
NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
HEAD = re.compile(
    rf"HTTP/1\.1 ([2-5][0-9][0-9]) [\t\x20-\x7e]*\r\n((?:{NAME}:[\t\x20-\x7e]*\r\n){{1,64}})"
)
LINE = re.compile(r"([^:\r\n]+):[\t ]*([^\r\n]*?)[\t ]*\r\n")
LENGTH = re.compile(r"[0-9]{1,5}")
NO_BODY = frozenset({"204", "304"})
LARGEST_BODY = 16 * 1024
LARGEST_HEAD = 64 * 1024
"""Bytes that a receiver may send before the head of its final response is complete."""
JOINED_BODY = 64 * 1024
"""Up to this size, a body is appended to its head, to leave in one write."""
SWITCHING_PROTOCOLS = 101


class Head(NamedTuple):
    """The head of a final response."""

    status: int
    headers: list[Header]
    retry_after: str | None
    proper: bool = True
    """Whether the response is HTTP/1."""


Answer = tuple[Head, StreamReader | None, bytes]
"""The head, and the body: unread, or complete."""


class HeadTooLong(HttpProcessingError):
    """The receiver sent too many bytes without completing the head of a final response."""


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
        self.broken = False
        """Whether the body of the response ended early."""
        self.retires = inf
        """When it is too old for another request, on the monotonic clock."""
        self._clock = clock
        self._idle = False
        self._answered = False
        self._opening = b""
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
        self._opening = b""
        self._payload = None
        # Created when a response arrives that needs it.
        self._parser = None
        if self._tail:
            self._set_params()

    async def answer(self) -> Answer:
        """Return the final response to the request. Raise the error that ended the connection."""
        return cast(Answer, await self.read())

    def write(self, head: bytes, body: bytes) -> None:
        """Send a request. Raise ConnectionResetError when the connection is closed already."""
        transport = self.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError
        if len(body) <= JOINED_BODY:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)

    def rest(self) -> None:
        """Mark the response as read; until the next request no data may arrive."""
        self._idle = True

    def data_received(self, data: bytes) -> None:
        if self._idle:
            # A response without a request would be taken for the response to the next request.
            self._abort()
            return
        if not data or not self.uses:
            super().data_received(data)
            return
        if self.first_byte is None:
            self.first_byte = self._clock.monotonic()
        self.received += len(data)
        if self._parser is None:
            plain = read_plain(data)
            if plain is not None:
                self._hand_over(plain[0], None, plain[1])
                return
            self._set_params()
        if self._answered:
            super().data_received(data)
            return
        self._opening += data
        super().data_received(data)
        if not self._answered and self.received > LARGEST_HEAD:
            self.set_exception(HeadTooLong())
            self._abort()

    def resume_reading(self, resume_parser: bool = True) -> None:
        # Called at the end of every body, usually with nothing to resume.
        if self._reading_paused or self._buffer_paused:
            super().resume_reading(resume_parser)

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        message, payload = data
        status = message.code
        if 100 <= status < 200 and status != SWITCHING_PROTOCOLS:
            return
        headers = [
            (name.decode("latin-1"), value.decode("utf-8", "replace"))
            for name, value in message.raw_headers
        ]
        retry_after = message.headers.get("Retry-After")
        proper = message.version.major == 1
        self._hand_over(Head(status, headers, retry_after, proper), payload, b"")

    def _hand_over(self, head: Head, payload: StreamReader | None, body: bytes) -> None:
        self._answered = True
        self._opening = b""
        # aiohttp's queue of responses carries this one.
        super().feed_data(cast(Any, (head, payload, body)))

    def set_exception(self, exc: BaseException, exc_cause: BaseException = _EXC_SENTINEL) -> None:
        if isinstance(exc, HttpProcessingError) and not self._answered and self._salvage():
            return
        super().set_exception(exc, exc_cause)
        self._break_body()

    def _salvage(self) -> bool:
        """Return whether a valid head arrived before a parser error, and use it as the response.

        The parser discards heads together with an invalid body that arrived behind them.
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
            parser.feed_data(rest)
        except HttpProcessingError:
            self._break_body()
        self.force_close()
        return self._answered

    def _break_body(self) -> None:
        """End the body at a parser error; the parser drops it, and a reader would wait for ever."""
        payload = self._payload
        if payload is not None and not payload.is_eof():
            self.broken = True
            payload.feed_eof()

    def _set_params(self) -> None:
        self.set_response_params(
            read_until_eof=True, auto_decompress=False, read_bufsize=LARGEST_BODY
        )

    def _abort(self) -> None:
        # Not self.abort(), which discards the exception for the reader.
        if self.transport is not None:
            self.transport.abort()


def read_plain(data: bytes) -> tuple[Head, bytes] | None:
    """Parse a complete and simple response into head and body; return None for any other.

    Most responses are one small packet with a Content-Length, and the general parser takes longer
    for one than the rest of a send. It handles everything unusual.
    """
    end = data.find(b"\r\n\r\n")
    if end < 0 or len(data) > LARGEST_PLAIN:
        return None
    try:
        text = data[: end + 2].decode("ascii")
    except UnicodeDecodeError:
        return None
    match = HEAD.fullmatch(text)
    if match is None or match[1] in NO_BODY:
        return None
    headers = LINE.findall(match[2])
    fields = {name.lower(): value for name, value in headers}
    length = fields.get("content-length", "")
    if (
        len(fields) < len(headers)
        or not LENGTH.fullmatch(length)
        or int(length) != len(data) - end - 4
        or "transfer-encoding" in fields
        or "upgrade" in fields
        or fields.get("connection", "keep-alive").lower() != "keep-alive"
    ):
        return None
    return Head(int(match[1]), headers, fields.get("retry-after")), data[end + 4 :]
