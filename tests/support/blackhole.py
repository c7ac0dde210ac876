"""A TCP proxy that can drop all traffic: no byte passes in either direction, and nothing closes.

A node sees this as a network that drops its packets. Connections opened meanwhile are accepted and
get no reply; afterwards the delayed data passes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

CHUNK = 65_536


class BlackHole:
    """`port` leads to `upstream`, both on 127.0.0.1, unless dark."""

    def __init__(self, upstream: int) -> None:
        self.upstream = upstream
        self.port = 0
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
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.upstream)
        pumps = [
            asyncio.create_task(self._pump(reader, up_writer)),
            asyncio.create_task(self._pump(up_reader, writer)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            up_writer.transport.abort()

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
async def black_hole(upstream: int) -> AsyncIterator[BlackHole]:
    """Run a proxy on a free port of 127.0.0.1 to `upstream`, a port there too."""
    hole = BlackHole(upstream)
    server = await asyncio.start_server(hole.serve, "127.0.0.1", 0)
    hole.port = server.sockets[0].getsockname()[1]
    try:
        yield hole
    finally:
        server.close()
        await hole.close()
