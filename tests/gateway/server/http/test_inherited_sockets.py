"""Sockets that several processes share, here two sites in one process."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway.server.http.inherited_sockets import GIVE_WAY_SECONDS, SharedSite

SECONDS = 10.0


class Answer(asyncio.Protocol):
    """Tells the client who has accepted it."""

    def __init__(self, name: bytes) -> None:
        self._name = name

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._name)
        transport.close()


@asynccontextmanager
async def listening(*names: bytes, giving: bytes) -> AsyncIterator[int]:
    """Run a site for each name on one queue; `giving` leaves connections to the others."""
    with socket.create_server(("127.0.0.1", 0)) as first:
        sites = [
            SharedSite(
                lambda name=name: Answer(name),  # type: ignore[misc] # the default binds it
                [first.dup()], 64, lambda name=name: name == giving,  # type: ignore[misc]
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


async def accepted_by(port: int) -> bytes:
    async with asyncio.timeout(SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            return await reader.read()
        finally:
            writer.close()


async def test_the_process_that_gives_way_leaves_connections_to_the_others() -> None:
    for drain, other in ((b"a", b"b"), (b"b", b"a")):
        async with listening(b"a", b"b", giving=drain) as port:
            assert {await accepted_by(port) for _ in range(20)} == {other}


async def test_it_takes_at_once_all_that_nobody_else_takes() -> None:
    async with listening(b"drain", giving=b"drain") as port:
        loop = asyncio.get_running_loop()
        began = loop.time()
        names = await asyncio.gather(*(accepted_by(port) for _ in range(30)))
        assert set(names) == {b"drain"}
        # Not one after another, each after a wait of its own.
        assert loop.time() - began < 30 * GIVE_WAY_SECONDS
