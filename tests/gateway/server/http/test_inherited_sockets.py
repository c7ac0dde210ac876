"""Sockets that several processes share, here two sites in one process."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway.server.http.inherited_sockets import SharedSite


class Answer(asyncio.Protocol):
    """Tells the client who has accepted it."""

    def __init__(self, name: bytes) -> None:
        self._name = name

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._name)
        transport.close()


class Giving:
    """Says of one site that it gives way, and counts how often it is asked."""

    def __init__(self, name: bytes) -> None:
        self.name, self.asked = name, 0

    def __call__(self, name: bytes) -> bool:
        self.asked += name == self.name
        return name == self.name


@asynccontextmanager
async def listening(*names: bytes, giving: Giving) -> AsyncIterator[int]:
    """Run a site for each name on one queue; one of them leaves connections to the others."""
    with socket.create_server(("127.0.0.1", 0)) as first:
        sites = [
            SharedSite(
                lambda name=name: Answer(name),  # type: ignore[misc] # the default binds it
                [first.dup()], 64, lambda name=name: giving(name),  # type: ignore[misc]
            )
            for name in names
        ]  # fmt: skip
        for site in sites:
            await site.start()
        try:
            yield sites[0].port
        finally:
            for site in sites:
                await site.stop()


async def told(client: socket.socket) -> bytes:
    """Return who has accepted a connection."""
    reader, writer = await asyncio.open_connection(sock=client)
    try:
        return await reader.read()
    finally:
        writer.close()


async def test_the_process_that_gives_way_leaves_connections_to_the_others() -> None:
    for drain, other in ((b"a", b"b"), (b"b", b"a")):
        async with listening(b"a", b"b", giving=Giving(drain)) as port:
            for _ in range(20):
                assert await told(socket.create_connection(("127.0.0.1", port))) == other


async def test_it_takes_at_once_all_that_nobody_else_takes() -> None:
    giving = Giving(b"drain")
    async with listening(b"drain", giving=giving) as port:
        # All are in the queue before it looks, and it waits once for all of them.
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(30)]
        assert set(await asyncio.gather(*map(told, clients))) == {b"drain"}
        assert giving.asked == 1
