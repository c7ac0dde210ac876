"""An HTTP proxy on loopback that opens tunnels by CONNECT, and notes what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class ConnectProxy:
    """`says` replaces the answer; `wants` is the credential that the proxy requires.

    A host that `hangs` never gets an answer; `names` are the addresses that the proxy knows.
    """

    port: int = 0
    says: bytes | None = None
    wants: str = ""
    hangs: str = "none"
    names: dict[str, str] = field(default_factory=dict)
    heads: list[list[str]] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def places(self) -> list[str]:
        """What each CONNECT named."""
        return [head[0].split(" ")[1] for head in self.heads]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
                self.heads.append(head)
                if self.says is not None:
                    writer.write(self.says)
                elif self.wants and f"Proxy-Authorization: {self.wants}" not in head:
                    writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
                else:
                    await self._tunnel(head[0].split(" ")[1], reader, writer)
        finally:
            writer.close()

    async def _tunnel(
        self, place: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        host, _, port = place.rpartition(":")
        if self.hangs in host:
            await asyncio.Event().wait()
        address = self.names.get(host, host.strip("[]"))
        try:
            there, to = await asyncio.open_connection(address, int(port))
        except OSError:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_copy(reader, to), _copy(there, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with suppress(OSError):
            while part := await reader.read(65_536):
                writer.write(part)
                await writer.drain()
    finally:
        # Also when the proxy ends while the receiver hangs.
        writer.close()


@asynccontextmanager
async def connect_proxy(says: bytes | None = None, wants: str = "") -> AsyncIterator[ConnectProxy]:
    proxy = ConnectProxy(says=says, wants=wants)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(proxy.serve(reader, writer))
        proxy.tasks.add(task)
        await asyncio.wait({task})

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        for task in proxy.tasks:
            task.cancel()
        await asyncio.gather(*proxy.tasks, return_exceptions=True)
