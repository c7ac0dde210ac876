"""A client connection with limits for the size of requests and the speed of the client.

aiohttp limits neither: it accepts a head of a megabyte, or a body of a byte per second.
It is one module because each limit needs the state of the connection and its own response.
"""

import asyncio
import re
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestHandler, RequestPayloadError

from gateway.domain.accounts.networks import share_of
from gateway.server.app_keys import CALLER
from gateway.server.config import Limits
from gateway.server.http import answers
from gateway.server.http.admission import Admission
from gateway.server.http.answers import Budget
from gateway.server.http.client_address import CLIENT
from gateway.server.http.transfer_pace import LONGEST_SECONDS, Transfer
from gateway.server.telemetry.logs import logger
from gateway.server.telemetry.metric_table import Reason

END = b"Content-Length: 0\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n" + END
SLOW = b"HTTP/1.1 408 Request Timeout\r\n" + END
LONG_HEAD = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + END
PROBE = re.compile(rb"(GET|HEAD) /(livez|readyz|metrics)(\?[!-~]*)? HTTP/1\.[01]")
PROBE_LINE = 512
FIELD_BYTES = 16_384
PROBE_SECONDS = 2.0
HEAD_BYTES = 32_768
SLICE_BYTES = 16_384
DROPPED_BYTES = 1_048_576
"""Bytes of a body that are read and dropped after an early response, so that it arrives."""
UNSENT_BYTES = 131_072


CODE = "validation_error"
MESSAGES = {
    400: "The request is not valid HTTP.",
    431: "The headers are too large or too many.",
    501: "The Transfer-Encoding must be chunked; or send the body with Content-Length.",
}
"""What the body says of a request that the parser refuses."""


TOO_LONG = "The address is too long; send a shorter query, or several requests."


def status_of(fault: BaseException | None, message: str) -> int:
    """Return the status for a request that the parser refuses."""
    if "invalid `Transfer-Encoding`" in message or "Invalid `Transfer-Encoding`" in message:
        return 501
    too_long = isinstance(fault, LineTooLong) and fault.args[1] == FIELD_BYTES
    return 431 if too_long or message == "Too many headers received" else 400


@dataclass(frozen=True, slots=True)
class Shared:
    """The shared state of all connections of a process."""

    limits: Limits
    admission: Admission
    requests: Budget
    """Bytes of requests without a response yet, by address."""
    answers: Budget
    """Bytes of unsent responses, by account."""
    refused: Callable[[Reason], None]


class Connection(RequestHandler):
    """A client connection and the times since which the server waits for it."""

    __slots__ = (
        "_body", "_counted", "_marks", "_owed", "_probe_start", "_received", "_sending",
        "_shared", "_taking", "_writing", "address", "for_probes", "head_bytes", "head_since",
        "headed_at", "idle_since", "on_lost", "stalled_since",
    )  # fmt: skip

    def __init__(self, manager: web.Server, shared: Shared, **kw: Any) -> None:
        super().__init__(manager, **kw)
        self._shared = shared
        self.address = ""
        self.for_probes = False
        self.head_since: float | None = None
        self.head_bytes = 0
        self.headed_at = 0.0
        self.idle_since = 0.0
        self.stalled_since: float | None = None
        self.on_lost: Callable[[], object] | None = None
        """Called when the client disconnects, to end work for this client only."""
        self._probe_start = b""
        self._body: StreamReader | None = None
        self._writing: AbstractStreamWriter | None = None
        # Of the current body and of what is written, once the server has looked at them.
        self._sending: Transfer | None = None
        self._taking: Transfer | None = None
        self._owed: list[tuple[str, int]] = []
        # Bytes received, bytes counted in the budget, and the end of each waiting head.
        self._received = self._counted = 0
        self._marks: deque[int] = deque()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        peer = transport.get_extra_info("peername")
        self.address = share_of(str(peer[0])) if peer else ""
        self.head_since = self.idle_since = self._loop.time()
        self.for_probes = not self._shared.admission.admit(self, self.address)
        # Without this, unread megabytes in the kernel's buffer count as sent.
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            wire = transport.get_extra_info("socket")
            with suppress(OSError):
                wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._shared.admission.release(self, self.address)
        self._shared.requests.give(self.address, self._counted)
        self._counted = 0
        self._give_back()
        super().connection_lost(exc)
        if self.on_lost is not None:
            self.on_lost()

    def data_received(self, data: bytes) -> None:
        if self.for_probes and not self._request_count:
            data = self._only_probes(data)
        if len(data) <= SLICE_BYTES:
            self._take_in(data)
            return
        # In slices, so that the check of the head's size comes soon after the limit.
        for place in range(0, len(data), SLICE_BYTES):
            self._take_in(data[place : place + SLICE_BYTES])

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        self._writing = request.writer
        if self.for_probes and not resp.prepared:
            resp.force_close()
        try:
            # After a refused upgrade aiohttp parses again what came with it.
            if self._upgraded or not await answers.send(request, resp):
                return await super().finish_response(request, resp, start_time)
            request._finish()
            return resp, False
        except ConnectionError:
            return resp, True
        finally:
            self._writing = self._taking = None
            self.idle_since = self._loop.time()
            self._give_back()
            self._let_go()

    def resume_reading(self, resume_parser: bool = True) -> None:
        # aiohttp calls this also behind a complete body, when its parser has nothing left.
        if self._reading_paused or self._body is None or not self._body.is_eof():
            super().resume_reading(resume_parser)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.stalled_since = self._loop.time()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.stalled_since = None

    def hold(self, holder: str, size: int) -> None:
        """Give `size` bytes back to the budget when the response is sent or abandoned."""
        self._owed.append((holder, size))

    def consumed(self, size: int) -> None:
        """Release bytes of a body that are processed before its response."""
        size = min(size, self._counted)
        self._shared.requests.give(self.address, size)
        self._counted -= size

    @property
    def busy(self) -> bool:
        """Whether a request has come whose response is not done.

        Before Python 3.12, aiohttp does not know of one while its task has yet to begin.
        """
        return bool(self._marks)

    @property
    def holder(self) -> str:
        """Who has the connection: the account or the client of its request, else its address."""
        request = self._current_request
        if request is not None:
            if CALLER in request:
                return request[CALLER].owner_id
            if CLIENT in request:
                return share_of(request[CLIENT].address)
        return self.address

    @property
    def waited_since(self) -> float | None:
        """The time since which the server waits for this client; None while the server works.

        For a body or a response, it is what the client needs longer than a brisk one.
        """
        slow = self.slow_since
        return self.idle_since if slow is None and not self.busy else slow

    @property
    def slow_since(self) -> float | None:
        """The same for a transfer; None when there is none."""
        if self.stalled_since is not None:
            return self.stalled_since if self._taking is None else self._taking.since
        if self._awaits_body():
            return self.headed_at if self._sending is None else self._sending.since
        return None

    def overdue(self, now: float) -> bool:
        """Return whether the client is too slow to send a head or body, or to read a response."""
        limits = self._shared.limits
        seconds, rate = limits.body_seconds, limits.least_bytes_per_second
        transport, writer = self.transport, self._writing
        unread = transport.get_write_buffer_size() if transport is not None else 0
        if unread or self._taking is not None:
            taken = (0 if writer is None else writer.output_size) - unread
            if self._taking is None:
                self._taking = Transfer(now, taken)
            elif self._taking.behind(now, taken, rate, awaited=unread > 0) > seconds:
                return True
        if self.head_since is not None and not self.busy:
            seconds = PROBE_SECONDS if self.for_probes else limits.header_seconds
            return now - self.head_since > seconds
        request = self._current_request
        if request is None or request.content.is_eof():
            return False
        if self._sending is None:
            self._sending = Transfer(self.headed_at, self._received)
        # While the server is behind, it does not wait for the client.
        awaited = not self._reading_paused
        behind = self._sending.behind(now, self._received, rate, awaited=awaited)
        return behind > seconds or self._sending.lasted > LONGEST_SECONDS

    def idle_past(self, now: float, seconds: float) -> bool:
        """Return whether the connection has been idle for more than `seconds`."""
        return not self.busy and self.head_since is None and now - self.idle_since > seconds

    def cut(self, response: bytes = SLOW) -> None:
        """Close the connection, with `response` unless another response has begun."""
        transport = self.transport
        if transport is None:
            return
        if self.stalled_since is not None:
            # Unread data would block an orderly close forever.
            transport.abort()
            return
        if self._writing is None or not self._writing.output_size:
            transport.write(response)
        self.force_close()

    def evict(self) -> None:
        """Close the connection to free its place and the bytes of its request."""
        self._shared.requests.give(self.address, self._counted)
        self._counted = 0
        # Between two requests, too: the client's next one may be on its way.
        self.cut(FULL)

    def _take_in(self, data: bytes) -> None:
        if self._force_close:
            return
        size, in_body = len(data), self._body is not None and not self._body.is_eof()
        if self.head_bytes and not in_body:
            end = data.find(b"\r\n\r\n")
            if self.head_bytes + (size if end < 0 else end) > HEAD_BYTES:
                self._refuse(LONG_HEAD, "too_large")
                return
        # A small request is always accepted, however large the bodies of other clients are.
        little = self._counted + size <= SLICE_BYTES
        take = self._shared.requests.take
        if not take(self.address, size, must=little):
            # A slow body has to give way to one that comes.
            self._shared.admission.make_room_for_bytes(self)
            if not take(self.address, size):
                self._refuse(FULL, "rate_limited")
                return
        self._counted += size
        self._received += size
        count = self._request_count
        super().data_received(data)
        if self._request_count != count:
            self.head_since = None
            self.headed_at = self._loop.time()
            self._sending = None
            self.head_bytes = 0
            self._marks.extend([self._received] * (self._request_count - count))
            self._body = self._messages[-1][1]
            if self.for_probes:
                self.close()
        elif not in_body:
            self.head_bytes += size
            if self.head_since is None and not self.busy:
                self.head_since = self._loop.time()
        elif not self.busy and self._counted > DROPPED_BYTES:
            # The rest of a body after an early response; DROPPED_BYTES of it are already read.
            self.force_close()

    def _refuse(self, response: bytes, why: Reason) -> None:
        self._shared.refused(why)
        self.cut(response)

    def _only_probes(self, data: bytes) -> bytes:
        """Return the received start of a probe's request once its first line is complete."""
        self._probe_start += data
        line, end, _ = self._probe_start.partition(b"\n")
        if PROBE.fullmatch(line.rstrip(b"\r")) and end:
            start, self._probe_start = self._probe_start, b""
            return start
        if end or len(line) > PROBE_LINE:
            self._refuse(FULL, "rate_limited")
        return b""

    def _awaits_body(self) -> bool:
        request = self._current_request
        return request is not None and not request.content.is_eof() and not self._reading_paused

    def _give_back(self) -> None:
        for holder, size in self._owed:
            self._shared.answers.give(holder, size)
        self._owed.clear()

    def _let_go(self) -> None:
        """Release the bytes of a request after its response."""
        if self._marks:
            self._marks.popleft()
        remaining = self._received - self._marks[0] if self._marks else self.head_bytes
        if remaining < self._counted:
            self._shared.requests.give(self.address, self._counted - remaining)
            self._counted = remaining

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log a fault that aiohttp found outside our middleware."""
        error = kw.get("exc_info")
        # An incomplete body already has a response; draining the body fails again.
        if not isinstance(error, RequestPayloadError):
            logger().error("connection_failed", exc_info=error or True)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the response to a parser error or to a fault outside the middleware.

        The path may be unknown, so that all doors have the same body.
        """
        if request.writer.output_size:
            raise ConnectionError("a response has already begun")
        status = status_of(exc, message or "") if status == 400 else status
        if status < 500 or status == 501:
            self._shared.refused("bad_request")
        elif exc is not None and not isinstance(exc, ConnectionError):
            # Disconnecting clients are normal and have their own log line.
            logger().error("request_failed", error_kind=type(exc).__name__, exc_info=exc)
        headers = {"Server": "Carteiro", "X-Content-Type-Options": "nosniff"}
        said = MESSAGES.get(status, "Internal server error.")
        if status == 400 and isinstance(exc, LineTooLong):
            said = TOO_LONG
        # No log has such a request, so that an id would lead nowhere.
        body = {"error": said, "code": CODE if status in MESSAGES else "internal_error"}
        response = web.json_response(body | {"requestId": ""}, status=status, headers=headers)
        response.force_close()
        return response
