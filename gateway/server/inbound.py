"""One client's connection: how much of its requests is taken in, and how slowly it may speak.

aiohttp bounds neither: a head of a megabyte, or a body a byte a second, are fine with it.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.web_protocol import RequestHandler, RequestPayloadError

from gateway.domain.accounts.networks import share_of
from gateway.server import early
from gateway.server.early import FULL, LONG_HEAD, PROBE_LINE, SLOW, status_of
from gateway.server.keys import CALLER
from gateway.server.shared import Shared
from gateway.server.telemetry.instruments import Reason
from gateway.server.telemetry.logs import logger

PROBE_SECONDS = 2.0
HEAD_BYTES = 32_768
SLICE_BYTES = 16_384
DROPPED_BYTES = 1_048_576
"""What is read and dropped of a body after its answer, so that the client gets to read that."""
MUCH_BYTES = 262_144
LEAST_RATE = 16_384
"""Bytes a second that a client reads at least, while MUCH_BYTES or more wait for it."""
UNSENT_BYTES = 131_072


class Connection(RequestHandler):
    """One client socket, and since when the server has been waiting for it."""

    __slots__ = (
        "_asked", "_body", "_marks", "_owed", "_rate_from", "_received", "_shared", "_taken",
        "_writing", "address", "for_probes", "head_bytes", "head_since", "headed_at",
        "idle_since", "left", "on_lost", "stalled_since",
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
        self.left = 0
        self.on_lost: Callable[[], object] | None = None
        """Ends what is under way for this client alone, when it goes."""
        self._asked = b""
        self._body: StreamReader | None = None
        self._writing: AbstractStreamWriter | None = None
        self._rate_from: tuple[float, int] | None = None
        self._owed: list[tuple[str, int]] = []
        # What was received, what of it counts as held, and where each head that waits ended.
        self._received = self._taken = 0
        self._marks: deque[int] = deque()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        peer = transport.get_extra_info("peername")
        self.address = share_of(str(peer[0])) if peer else ""
        self.head_since = self.idle_since = self._loop.time()
        self.for_probes = not self._shared.admission.admit(self, self.address)
        # Without this, megabytes that nobody reads look as if they had been sent.
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            wire = transport.get_extra_info("socket")
            with suppress(OSError):
                wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._shared.admission.release(self, self.address)
        self._shared.requests.give(self.address, self._taken)
        self._taken = 0
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
        # In slices, so that a head is never much longer than it may be when that is seen.
        for place in range(0, len(data), SLICE_BYTES):
            self._take_in(data[place : place + SLICE_BYTES])

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        self._writing = request.writer
        if self.for_probes and not resp.prepared:
            resp.force_close()
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self._writing = self._rate_from = None
            self.left = 0
            self.idle_since = self._loop.time()
            self._give_back()
            self._let_go()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.stalled_since = self._loop.time()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.stalled_since = None

    def hold(self, holder: str, size: int) -> None:
        """Give so much back to the budget of answers when the answer is sent or given up."""
        self._owed.append((holder, size))

    @property
    def busy(self) -> bool:
        """A request is being answered or waits to be."""
        return self._request_in_progress or bool(self._messages)

    @property
    def waited_since(self) -> float | None:
        """Since when the server has been waiting for this client; None while it is at work."""
        if self.stalled_since is not None:
            return self.stalled_since
        if not self.busy:
            return self.idle_since
        request = self._current_request
        if request is not None and not request.content.is_eof() and CALLER not in request:
            return self.headed_at
        return None

    def overdue(self, now: float) -> bool:
        """Whether the client is too slow with a head, a body, or with reading its answer."""
        limits = self._shared.limits
        if self.stalled_since is not None and now - self.stalled_since > limits.body_seconds:
            return True
        if self._crawls(now, limits.body_seconds):
            return True
        if self.head_since is not None and not self.busy:
            seconds = PROBE_SECONDS if self.for_probes else limits.header_seconds
            return now - self.head_since > seconds
        request = self._current_request
        return (
            request is not None
            and not request.content.is_eof()
            and now - self.headed_at > limits.body_seconds
        )

    def idle_past(self, now: float, seconds: float) -> bool:
        """Whether it has waited so long for a next request."""
        return not self.busy and self.head_since is None and now - self.idle_since > seconds

    def cut(self, said: bytes = SLOW) -> None:
        """End a connection; it is told why unless an answer is on its way already."""
        transport = self.transport
        if transport is None:
            return
        if self.stalled_since is not None:
            # What the client does not read would hold up an orderly close for ever.
            transport.abort()
            return
        if self._writing is None or not self._writing.output_size:
            transport.write(said)
        self.force_close()

    def evict(self) -> None:
        """Close it, so that somebody else gets its place."""
        if self.busy or self.head_since is not None:
            self.cut(FULL)
        else:
            # Between two requests nothing is expected.
            self.force_close()

    def _take_in(self, data: bytes) -> None:
        if self._force_close:
            return
        size, in_body = len(data), self._body is not None and not self._body.is_eof()
        if self.head_bytes and not in_body:
            end = data.find(b"\r\n\r\n")
            if self.head_bytes + (size if end < 0 else end) > HEAD_BYTES:
                self._refuse(LONG_HEAD, "too_large")
                return
        # A little is always taken: others' large bodies must not keep out small requests.
        little = self._taken + size <= SLICE_BYTES
        if not self._shared.requests.take(self.address, size, must=little):
            self._refuse(FULL, "rate_limited")
            return
        self._taken += size
        self._received += size
        count = self._request_count
        super().data_received(data)
        if self._request_count != count:
            self.head_since = None
            self.headed_at = self._loop.time()
            self.head_bytes = 0
            self._marks.extend([self._received] * (self._request_count - count))
            self._body = self._messages[-1][1]
            if self.for_probes:
                self.close()
        elif not in_body:
            self.head_bytes += size
            if self.head_since is None and not self.busy:
                self.head_since = self._loop.time()
        elif not self.busy and self._taken > DROPPED_BYTES:
            # The rest of a body whose request is answered; so much is read for the answer's sake.
            self.force_close()

    def _refuse(self, said: bytes, why: Reason) -> None:
        self._shared.refused(why)
        self.cut(said)

    def _only_probes(self, data: bytes) -> bytes:
        """The beginning of a request for a probe, once its first line is there; else nothing."""
        self._asked += data
        line, end, _ = self._asked.partition(b"\n")
        if early.PROBE.fullmatch(line.rstrip(b"\r")) and end:
            asked, self._asked = self._asked, b""
            return asked
        if end or len(line) > PROBE_LINE:
            self._refuse(FULL, "rate_limited")
        return b""

    def _crawls(self, now: float, seconds: float) -> bool:
        """Whether much waits for the client, and it has read less than the least rate."""
        writer, transport = self._writing, self.transport
        buffered = transport.get_write_buffer_size() if transport is not None else 0
        if writer is None or self.left + buffered < MUCH_BYTES:
            self._rate_from = None
            return False
        sent = writer.output_size - buffered
        if self._rate_from is None:
            self._rate_from = (now, sent)
            return False
        began, then = self._rate_from
        if now - began < seconds:
            return False
        self._rate_from = (now, sent)
        return sent - then < LEAST_RATE * (now - began)

    def _give_back(self) -> None:
        for holder, size in self._owed:
            self._shared.answers.give(holder, size)
        self._owed.clear()

    def _let_go(self) -> None:
        """A request is answered: what was received of it is held no longer."""
        if self._marks:
            self._marks.popleft()
        kept = self._received - self._marks[0] if self._marks else self.head_bytes
        if kept < self._taken:
            self._shared.requests.give(self.address, self._taken - kept)
            self._taken = kept

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """aiohttp found a fault outside of our middleware."""
        error = kw.get("exc_info")
        # A body that broke off in reading was answered; draining it fails once more.
        if not isinstance(error, RequestPayloadError):
            logger().error("connection_failed", exc_info=error or True)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What the HTTP parser refused, or a fault outside of the middleware: a bare status."""
        if request.writer.output_size:
            raise ConnectionError("an answer is on its way already")
        status = status_of(exc, message or "") if status == 400 else status
        if status < 500 or status == 501:
            self._shared.refused("bad_request")
        elif exc is not None and not isinstance(exc, ConnectionError):
            # Clients that go away are daily life, and have their line as such.
            logger().error("request_failed", error_kind=type(exc).__name__, exc_info=exc)
        headers = {"Server": "Carteiro", "X-Content-Type-Options": "nosniff"}
        response = web.Response(status=status, headers=headers)
        response.force_close()
        return response
