"""Creates and counts all client connections, and ends slow ones.

aiohttp has no timeout for a request's headers or body, and no limit of connections. One check per
second of all connections enforces both, at no cost per request.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from gateway.server.config import Limits
from gateway.server.http.admission import Admission
from gateway.server.http.answers import ANSWERS, Budget
from gateway.server.http.inbound import FIELD_BYTES, Connection, Shared
from gateway.server.telemetry.metric_table import Reason

LOOK_SECONDS = 1.0
LINGER_SECONDS = 2.0
READ_BYTES = 65_536
"""At most twice as many bytes of a body wait in memory for the handler."""
FINISH_SECONDS = 0.02


class Server(web.Server):
    """A server that counts its connections and once a second ends those that are too slow."""

    def __init__(
        self,
        handler: Callable[..., Any],
        *,
        limits: Limits,
        answers: Budget,
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
            # gateway.server.http.bodies decompresses the bodies.
            auto_decompress=False,
            max_field_size=FIELD_BYTES,
            read_bufsize=READ_BYTES,
        )
        self._keep_alive = limits.keep_alive_seconds
        self._shared = Shared(
            limits,
            Admission(limits.connections, limits.connections_per_address, loop.time),
            Budget(limits.request_bytes, limits.request_bytes // 2),
            answers,
            refused,
        )
        self._look = loop.call_later(LOOK_SECONDS, self._look_round)

    def __call__(self) -> Connection:
        return Connection(self, self._shared, loop=self._loop, **self._kwargs)

    def census(self) -> dict[str, int]:
        """Return the number of connections by state."""
        busy = sum(1 for c in self._connections if isinstance(c, Connection) and c.busy)
        return {"active": busy, "idle": len(self._connections) - busy}

    async def finish(self, seconds: float) -> None:
        """Close idle connections and wait up to `seconds` for responses to all accepted requests.

        aiohttp's own shutdown follows: it no longer reads bodies that are still arriving.
        """
        end = self._loop.time() + seconds
        # Read the data first that the kernel has already received.
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
        idle_seconds = self._shared.admission.idle_seconds(self._keep_alive)
        for connection in self.connections:
            if not isinstance(connection, Connection):
                continue
            if connection.overdue(now):
                self._shared.refused("slow")
                connection.cut()
            elif connection.idle_past(now, idle_seconds):
                connection.force_close()
        for slow in self._shared.admission.too_many_slow():
            if isinstance(slow, Connection):
                self._shared.refused("slow")
                slow.cut()
        self._look = self._loop.call_later(LOOK_SECONDS, self._look_round)


class Runner(web.AppRunner):
    """A runner that serves an application over the connections of this module."""

    def __init__(
        self, app: web.Application, limits: Limits, refused: Callable[[Reason], None], grace: float
    ) -> None:
        super().__init__(app, shutdown_timeout=grace)
        self._limits = limits
        self._refused = refused

    async def finish(self, seconds: float) -> None:
        """Answer all accepted requests within `seconds`; call it after the end of listening."""
        if isinstance(self.server, Server):
            await self.server.finish(seconds)

    def census(self) -> dict[str, int]:
        """Return the number of connections by state."""
        server = self.server
        return server.census() if isinstance(server, Server) else {"active": 0, "idle": 0}

    async def _make_server(self) -> Server:
        app, loop = self._app, asyncio.get_running_loop()
        app._set_loop(loop)
        app.on_startup.freeze()
        await app.startup()
        app.freeze()
        return Server(
            app[FRAME],
            limits=self._limits,
            answers=app[ANSWERS],
            refused=self._refused,
            loop=loop,
            request_factory=app._make_request,
        )


FRAME: web.AppKey[Handler] = web.AppKey("FRAME")
