"""One connection to a receiver: aiohttp's own, with what it leaves open to hostile ones closed.

The parts of aiohttp that are not its public face are used here and in outbox.sending.connect alone;
tests/outbox/sending/test_wire.py says what is expected of them.
"""

import asyncio
import re
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

from aiohttp.client_proto import ResponseHandler
from aiohttp.helpers import _EXC_SENTINEL, EMPTY_BODY_STATUS_CODES
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import RawResponseMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from outbox.clock import Clock
from outbox.sending.urls import Refused

Stage = Literal["dns", "connect", "tls", "answer"]
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
"""Bytes that a receiver may send before the head of its final answer is complete."""
JOINED_BODY = 64 * 1024
"""Up to here a body is copied behind its head, to leave in one write."""
SWITCHING_PROTOCOLS = 101


class Head(NamedTuple):
    """The head of a final answer."""

    status: int
    headers: list[Header]
    retry_after: str | None
    proper: bool = True
    """Whether it is of HTTP/1."""


Answer = tuple[Head, StreamReader | None, bytes]
"""The head, and the body: still to be read, or there whole."""


class HeadTooLong(HttpProcessingError):
    """The receiver went on without ever completing the head of a final answer."""


@dataclass(slots=True)
class Progress:
    """How far one attempt has come. Instants are seconds on the monotonic clock."""

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
    wire: "Wire | None" = None
    head: Head | None = None
    body: bytes = b""
    complete: bool = False


current: ContextVar[Progress] = ContextVar("current")
"""The attempt that this task is about."""


class Wire(ResponseHandler):
    """One connection to a receiver."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        super().__init__(loop)
        self.address: str | None = None
        self.uses = 0
        self.received = 0
        """Bytes of the current answer."""
        self.first_byte: float | None = None
        self.broken = False
        """Whether the body of the answer ended before its time."""
        self._clock = clock
        self._idle = False
        self._answered = False
        self._opening = b""
        progress = current.get()
        # Connectors make this object when TCP is up, before TLS begins.
        progress.connected = clock.monotonic()
        progress.stage = "tls" if progress.tls else "connect"

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
        self._payload = None
        # Made when an answer comes that needs it.
        self._parser = None
        if self._tail:
            self._set_params()

    async def answer(self) -> Answer:
        """The final answer to the request. Raises what ended the connection instead."""
        return cast(Answer, await self.read())

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
        # Called at the end of every body, where there is mostly nothing to resume.
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
        # aiohttp's queue of answers carries ours.
        super().feed_data(cast(Any, (head, payload, body)))

    def set_exception(self, exc: BaseException, exc_cause: BaseException = _EXC_SENTINEL) -> None:
        if isinstance(exc, HttpProcessingError) and not self._answered and self._salvage():
            return
        super().set_exception(exc, exc_cause)
        self._break_body()

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
            parser.feed_data(rest)
        except HttpProcessingError:
            self._break_body()
        self.force_close()
        return self._answered

    def _break_body(self) -> None:
        """End the body where the parser choked; it forgets it, and a reader would wait for ever."""
        payload = self._payload
        if payload is not None and not payload.is_eof():
            self.broken = True
            payload.feed_eof()

    def _set_params(self) -> None:
        self.set_response_params(
            read_until_eof=True, auto_decompress=False, read_bufsize=LARGEST_BODY
        )

    def _abort(self) -> None:
        # Not self.abort(): that forgets the exception which the reader is to see.
        if self.transport is not None:
            self.transport.abort()


def read_plain(data: bytes) -> tuple[Head, bytes] | None:
    """Head and body of an answer that lies there whole and could not be plainer; else None.

    Most answers are one small packet with a Content-Length, and the general parser takes longer
    over one than the rest of a send. Whatever is in any way unusual is left to that parser.
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
