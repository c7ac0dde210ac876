"""A TCP proxy that can drop all traffic: no byte passes in either direction, and nothing closes.

A node sees this as a network that drops its packets. Connections opened meanwhile are accepted and
get no reply; afterwards the delayed data passes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import parse_qs, urlsplit, urlunsplit

CHUNK = 65_536

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class BlackHole:
    """`port` of 127.0.0.1 leads to where `connect` does, and so does `url`, unless dark."""

    def __init__(self, connect: Connect) -> None:
        self.port = 0
        self.url = ""
        self._connect = connect
        self._lit = asyncio.Event()
        self._lit.set()
        self._links: set[asyncio.Task[None]] = set()

    def darken(self) -> None:
        """Stop all traffic."""
        self._lit.clear()

    def lighten(self) -> None:
        """Let all traffic pass, delayed data first."""
        self._lit.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection until it or the proxy ends."""
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            self._links.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._lit.wait()
        up_reader, up_writer = await self._connect()
        pumps = [
            asyncio.create_task(self._pump(reader, up_writer)),
            asyncio.create_task(self._pump(up_reader, writer)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # First, because the proxy may end while the pumps do.
            up_writer.transport.abort()
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward the bytes of one direction and its end; neither passes in the dark."""
        try:
            while data := await reader.read(CHUNK):
                await self._lit.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        await self._lit.wait()

    async def close(self) -> None:
        """Close every connection."""
        for task in self._links:
            task.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)


@asynccontextmanager
async def black_hole_before(url: str) -> AsyncIterator[BlackHole]:
    """Run a proxy before the PostgreSQL server at `url`; its own `url` leads through it."""
    parts = urlsplit(url)
    folder = parse_qs(parts.query).get("host", [""])[0]
    connect: Connect = partial(asyncio.open_connection, parts.hostname, parts.port)
    if folder:
        socket = f"{folder}/.s.PGSQL.{parts.port or 5432}"
        connect = partial(asyncio.open_unix_connection, socket)
    query = "&".join(word for word in parts.query.split("&") if not word.startswith("host="))
    async with black_hole(connect) as hole:
        netloc = f"{parts.username or 'postgres'}@127.0.0.1:{hole.port}"
        hole.url = urlunsplit(parts._replace(netloc=netloc, query=query))
        yield hole


@asynccontextmanager
async def black_hole(connect: Connect) -> AsyncIterator[BlackHole]:
    """Run a proxy on a free port of 127.0.0.1."""
    hole = BlackHole(connect)
    server = await asyncio.start_server(hole.serve, "127.0.0.1", 0)
    hole.port = server.sockets[0].getsockname()[1]
    try:
        yield hole
    finally:
        server.close()
        await hole.close()
