"""Client connections: how many, for how long, and how slowly they may speak.

aiohttp has no deadline for a request's headers or body, and no limit of connections. Both are
kept here by one look a second over all connections, which costs a request nothing.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler, RequestPayloadError

from gateway.config import Limits
from gateway.logs import logger
from gateway.metrics import Reason
from gateway.proxies import share_of

FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
    b"Content-Length: 0\r\nConnection: close\r\n\r\n"
)
SLOW = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
LOOK_SECONDS = 1.0
LINGER_SECONDS = 2.0
READ_BYTES = 65_536
"""Twice as much of a body waits in memory for its reader, at most."""
FINISH_SECONDS = 0.02


class Connection(RequestHandler):
    """One client socket, and since when the server has been waiting for it."""

    __slots__ = ("head_since", "headed_at", "holder", "on_lost", "stalled_since")

    def __init__(self, manager: "Server", *, loop: asyncio.AbstractEventLoop, **kw: Any) -> None:
        super().__init__(manager, loop=loop, **kw)
        self.holder: str | None = None
        self.on_lost: Callable[[], object] | None = None
        """Ends what is under way for this client alone, when it goes."""
        self.head_since: float | None = None
        self.headed_at = 0.0
        self.stalled_since: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        server = self._manager
        assert isinstance(server, Server)
        peer = transport.get_extra_info("peername")
        share = share_of(str(peer[0])) if peer else ""
        if not server.admit(share):
            # aiohttp never learns of this one.
            self._manager = None
            self._force_close = True
            # uvloop's transports are asyncio.Transports by shape, not by class.
            refused = cast(asyncio.Transport, transport)
            refused.write(FULL)
            refused.close()
            return
        self.holder = share
        self.head_since = self._loop.time()
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        server = self._manager
        if isinstance(server, Server) and self.holder is not None:
            server.release(self.holder)
            self.holder = None
        super().connection_lost(exc)
        if self.on_lost is not None:
            self.on_lost()

    def data_received(self, data: bytes) -> None:
        count = self._request_count
        super().data_received(data)
        if self._request_count != count:
            self.head_since = None
            self.headed_at = self._loop.time()
        elif self.head_since is None and not self.busy:
            self.head_since = self._loop.time()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.stalled_since = self._loop.time()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.stalled_since = None

    @property
    def busy(self) -> bool:
        """A request is being answered or waits to be."""
        return self._current_request is not None or bool(self._messages)

    def overdue(self, now: float, limits: Limits) -> bool:
        """Whether the client is too slow with a head, a body, or with reading its answer."""
        if self.stalled_since is not None and now - self.stalled_since > limits.body_seconds:
            return True
        if self.head_since is not None and not self.busy:
            return now - self.head_since > limits.header_seconds
        request = self._current_request
        return (
            request is not None
            and not request.content.is_eof()
            and now - self.headed_at > limits.body_seconds
        )

    def cut(self) -> None:
        """End a slow connection; it is told why unless an answer is on its way already."""
        request = self._current_request
        transport = self.transport
        if transport is not None and self.stalled_since is None:
            if request is None or not request.writer.output_size:
                transport.write(SLOW)
            self.force_close()
        elif transport is not None:
            # What the client does not read would hold up an orderly close for ever.
            transport.abort()

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
        server = self._manager
        if status == 400 and isinstance(server, Server):
            server.refused("bad_request")
        elif exc is not None and not isinstance(exc, ConnectionError):
            # Clients that go away are daily life, and have their line as such.
            logger().error("request_failed", error_kind=type(exc).__name__, exc_info=exc)
        response = web.Response(status=status, headers={"Server": "Carteiro"})
        response.force_close()
        return response


class Server(web.Server):
    """Makes connections, counts them, and once a second ends those that are too slow."""

    def __init__(
        self,
        handler: Callable[..., Any],
        *,
        limits: Limits,
        refused: Callable[[Reason], None],
        loop: asyncio.AbstractEventLoop,
        request_factory: Callable[..., Any],
    ) -> None:
        super().__init__(
            handler,
            request_factory=request_factory,
            loop=loop,
            access_log=None,
            keepalive_timeout=limits.keep_alive_seconds,
            max_line_size=limits.url_bytes,
            lingering_time=LINGER_SECONDS,
            # Bodies are unpacked where they are read, by gateway.bodies.
            auto_decompress=False,
            read_bufsize=READ_BYTES,
        )
        self._limits = limits
        self.refused = refused
        self._open = 0
        self._shares: Counter[str] = Counter()
        self._look = loop.call_later(LOOK_SECONDS, self._look_round)

    def __call__(self) -> Connection:
        return Connection(self, loop=self._loop, **self._kwargs)

    def admit(self, share: str) -> bool:
        """Whether an address may open one connection more."""
        limits = self._limits
        if self._open >= limits.connections or (
            self._shares[share] >= limits.connections_per_address
        ):
            self.refused("rate_limited")
            return False
        self._open += 1
        self._shares[share] += 1
        return True

    def release(self, share: str) -> None:
        """An admitted connection has ended."""
        self._open -= 1
        self._shares[share] -= 1
        if not self._shares[share]:
            del self._shares[share]

    def census(self) -> dict[str, int]:
        """Connections by state."""
        busy = sum(1 for c in self._connections if isinstance(c, Connection) and c.busy)
        return {"active": busy, "idle": len(self._connections) - busy}

    async def finish(self, seconds: float) -> None:
        """Close what is idle and wait, at most so long, until all that was accepted is answered.

        aiohttp's own shutdown comes after: it no longer reads bodies that are still on their way.
        """
        end = self._loop.time() + seconds
        # What the kernel has received already is read first.
        await asyncio.sleep(0)
        while True:
            for connection in self.connections:
                if isinstance(connection, Connection) and not connection.busy:
                    connection.close()
            if not self.census()["active"] or self._loop.time() >= end:
                return
            await asyncio.sleep(FINISH_SECONDS)

    async def shutdown(self, timeout: float | None = None) -> None:
        self._look.cancel()
        await super().shutdown(timeout)

    def _look_round(self) -> None:
        now = self._loop.time()
        for connection in self.connections:
            if isinstance(connection, Connection) and connection.overdue(now, self._limits):
                self.refused("slow")
                connection.cut()
        self._look = self._loop.call_later(LOOK_SECONDS, self._look_round)


class Runner(web.AppRunner):
    """Serves an application over the connections of this module."""

    def __init__(
        self, app: web.Application, limits: Limits, refused: Callable[[Reason], None], grace: float
    ) -> None:
        super().__init__(app, shutdown_timeout=grace)
        self._limits = limits
        self._refused = refused

    async def finish(self, seconds: float) -> None:
        """Once nothing listens any more: answer what was accepted, within so many seconds."""
        if isinstance(self.server, Server):
            await self.server.finish(seconds)

    def census(self) -> dict[str, int]:
        """Connections by state."""
        server = self.server
        return server.census() if isinstance(server, Server) else {"active": 0, "idle": 0}

    async def _make_server(self) -> Server:
        app, loop = self._app, asyncio.get_running_loop()
        app._set_loop(loop)
        app.on_startup.freeze()
        await app.startup()
        app.freeze()
        return Server(
            app._handle,
            limits=self._limits,
            refused=self._refused,
            loop=loop,
            request_factory=app._make_request,
        )
