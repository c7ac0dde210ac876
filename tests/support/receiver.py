"""Real HTTP receivers on loopback: a well-behaved one that checks signatures, and a hostile one."""

from __future__ import annotations

import asyncio
import hmac
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from aiohttp import web
from standardwebhooks import Webhook

from tests.support.waiting import HANG_SECONDS

Script = Callable[["Visit"], Awaitable[None]]
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Received:
    """One received request."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """A well-behaved receiver. With a `secret` it responds 401 to wrong signatures."""

    secret: str | None = None
    answer: Answer | None = None
    url: str = ""
    requests: list[Received] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def got(self) -> list[Received]:
        return self.requests

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {n.decode(): v.decode("latin-1") for n, v in request.raw_headers}
        async with self.changed:
            self.requests.append(Received(request.raw_path, headers, body))
            self.changed.notify_all()
        if self.secret is not None:
            digest = hmac.new(self.secret.encode(), body, "sha256").hexdigest()
            Webhook(self.secret).verify(body, headers, json_parse=False)
            if not hmac.compare_digest(headers["X-Webhook-Signature"], f"sha256={digest}"):
                return web.Response(status=401)
        return await self.answer(request) if self.answer else web.Response(text="ok")

    async def until(
        self, count: int, path: str | None = None, seconds: float = HANG_SECONDS
    ) -> list[Received]:
        """Wait for `count` requests (to `path`), and return them."""

        def mine() -> list[Received]:
            return [one for one in self.requests if path is None or one.path == path]

        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(lambda: len(mine()) >= count)
        return mine()

    wait = until


@asynccontextmanager
async def receiver(
    *,
    secret: str | None = None,
    answer: Answer | None = None,
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
) -> AsyncIterator[Receiver]:
    """Run a Receiver, on its own port unless told another."""
    behaved = Receiver(secret, answer)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", behaved.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, host, port, ssl_context=tls)
    await site.start()
    behaved.url = f"{'https' if tls else 'http'}://{host}:{runner.addresses[0][1]}"
    try:
        yield behaved
    finally:
        await site.stop()
        # A connection that was just accepted is made two turns of the loop later: the runner closes
        # those alone that it knows.
        for _ in range(3):
            await asyncio.sleep(0)
        await runner.cleanup()


class Visit:
    """One connection to a hostile receiver, with the operations for its script."""

    def __init__(
        self, server: Hostile, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.server = server
        self.number = server.visits
        self._reader = reader
        self._writer = writer
        # Data that the sender does not read stays here, where `written` counts it.
        connection: socket.socket = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)

    async def request(self) -> bytes:
        """Read one whole request; return its body."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.partition(b":")[2])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        )
        body = await self._reader.readexactly(length)
        self.server.requests.append(body)
        return body

    async def head(self) -> bytes:
        """Read the head of a request alone, and leave its body unread."""
        return await self._reader.readuntil(b"\r\n\r\n")

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        self.server.written += len(data)
        await self._writer.drain()

    async def reply(self, data: bytes) -> None:
        """Write `data` after each request, and leave the connection open."""
        while True:
            await self.request()
            await self.write(data)

    async def gone(self) -> None:
        """Wait until the sender has closed the connection."""
        while await self._reader.read(65_536):
            pass

    def reset(self) -> None:
        """Break the connection with a RST."""
        connection: socket.socket = self._writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


@dataclass
class Hostile:
    """A receiver that follows a script, byte by byte."""

    script: Script
    url: str = ""
    visits: int = 0
    requests: list[bytes] = field(default_factory=list)
    written: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set each time a connection is over."""

    async def visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.visits += 1
        # Senders may disconnect at any time here; uvloop reports that as a RuntimeError.
        with suppress(OSError, EOFError, RuntimeError):
            await self.script(Visit(self, reader, writer))
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        self.ended.set()


@asynccontextmanager
async def hostile(
    script: Script,
    tls: ssl.SSLContext | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
) -> AsyncIterator[Hostile]:
    """Run a Hostile, on its own port unless told another."""
    server = Hostile(script)
    tasks: set[asyncio.Task[None]] = set()

    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await server.visit(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            tasks.discard(task)

    listening = await asyncio.start_server(visit, host, port, ssl=tls, limit=2**20)
    port = listening.sockets[0].getsockname()[1]
    server.url = f"{'https' if tls else 'http'}://{host}:{port}/hook"
    try:
        yield server
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
