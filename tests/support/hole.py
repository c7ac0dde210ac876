"""A route to PostgreSQL that can drop packets, as in a partition or a failover without RST."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit, urlunsplit


@dataclass
class Hole:
    """`url` leads through it; while `through` is not set, nothing arrives on either side."""

    url: str
    through: asyncio.Event
    pumps: set[asyncio.Task[None]] = field(default_factory=set)

    async def pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                await self.through.wait()
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.transport.abort()


@asynccontextmanager
async def hole(url: str) -> AsyncIterator[Hole]:
    """Run a hole before the server at `url`, open at first."""
    parts = urlsplit(url)
    folder = parse_qs(parts.query).get("host", [""])[0]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if folder:
            there = asyncio.open_unix_connection(f"{folder}/.s.PGSQL.{parts.port or 5432}")
        else:
            there = asyncio.open_connection(parts.hostname, parts.port)
        up_reader, up_writer = await there
        for pump in (found.pump(reader, up_writer), found.pump(up_reader, writer)):
            task = asyncio.create_task(pump)
            found.pumps.add(task)
            task.add_done_callback(found.pumps.discard)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    query = "&".join(word for word in parts.query.split("&") if not word.startswith("host="))
    user = parts.username or "postgres"
    netloc = f"{user}@127.0.0.1:{port}"
    found = Hole(urlunsplit(parts._replace(netloc=netloc, query=query)), asyncio.Event())
    found.through.set()
    try:
        yield found
    finally:
        server.close()
        for task in tuple(found.pumps):
            task.cancel()
        await asyncio.gather(*found.pumps, return_exceptions=True)
