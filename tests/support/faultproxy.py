"""A TCP proxy before PostgreSQL that cuts a connection during a COMMIT.

It follows the frontend's messages (PostgreSQL manual, chapter "Message Formats"), so that it
recognises the COMMIT of a transaction that wrote to a certain table. A statement outside a
transaction commits by itself: it counts as its COMMIT.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

Cut = Literal["before", "sent", "answered"]
"""Do not forward the COMMIT; or forward it and close at once; or drop its reply."""

SSL_REQUEST = 80877103
ANSWER_SECONDS = 5.0


@dataclass
class _Order:
    cut: Cut
    statement: bytes
    done: asyncio.Future[None]


@dataclass
class FaultProxy:
    """`port` leads to the server; `cut_next` breaks one connection."""

    upstream: int
    port: int = 0
    orders: list[_Order] = field(default_factory=list)
    refusing: bool = False
    """Whether new connections are closed at once; open ones stay."""

    async def cut_next(self, cut: Cut, statement: str = "", seconds: float = 20.0) -> None:
        """Cut the next COMMIT of a transaction with a statement that has this text (any, if empty).

        Return after the cut.
        """
        done = asyncio.get_running_loop().create_future()
        self.orders.append(_Order(cut, statement.encode(), done))
        async with asyncio.timeout(seconds):
            await done

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            writer.transport.abort()
            return
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.upstream)
        except OSError:
            writer.transport.abort()
            return
        link = _Link(self, writer, up_writer)
        pumps = [
            asyncio.create_task(link.forth(reader)),
            asyncio.create_task(link.back(up_reader)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            writer.transport.abort()
            up_writer.transport.abort()


@asynccontextmanager
async def fault_proxy(upstream: int) -> AsyncIterator[FaultProxy]:
    """Run a proxy on a free port of 127.0.0.1 to `upstream`, a port there too."""
    proxy = FaultProxy(upstream)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()


class _Link:
    """One client connection and its own connection to the server."""

    def __init__(
        self, proxy: FaultProxy, client: asyncio.StreamWriter, server: asyncio.StreamWriter
    ) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._statements: dict[bytes, bytes] = {}
        self._ran: set[bytes] = set()
        self._begun = False
        self._cut: _Order | None = None
        self._answered = asyncio.Event()

    async def forth(self, reader: asyncio.StreamReader) -> None:
        """Forward from client to server, message by message."""
        try:
            while True:
                head = await reader.readexactly(4)
                body = await reader.readexactly(struct.unpack("!I", head)[0] - 4)
                self._server.write(head + body)
                if struct.unpack("!I", body[:4])[0] != SSL_REQUEST:
                    break
            while True:
                kind = await reader.readexactly(1)
                head = await reader.readexactly(4)
                body = await reader.readexactly(struct.unpack("!I", head)[0] - 4)
                order = self._note(kind, body)
                if order is not None:
                    await self._carry_out(order, kind + head + body)
                    return
                self._server.write(kind + head + body)
                await self._server.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return

    async def back(self, reader: asyncio.StreamReader) -> None:
        """Forward from server to client."""
        try:
            while data := await reader.read(65_536):
                if self._cut is not None:
                    self._answered.set()
                    continue
                self._client.write(data)
                await self._client.drain()
        except ConnectionError:
            return

    def _note(self, kind: bytes, body: bytes) -> _Order | None:
        """Follow the transaction; return the order to carry out at the COMMIT it applies to."""
        if kind == b"P":
            name, text, _ = body.split(b"\0", 2)
            self._statements[name] = text.strip().lower()
        elif kind == b"B":
            _, name, _ = body.split(b"\0", 2)
            self._ran.add(self._statements.get(name, b""))
        elif kind == b"S" and not self._begun:
            ran, self._ran = self._ran, set()
            return self._order(ran) if any(b"insert into" in text for text in ran) else None
        elif kind == b"Q":
            text = body.rstrip(b"\0").strip().lower()
            if text.startswith(b"begin"):
                self._ran.clear()
                self._begun = True
            elif text in (b"commit", b"rollback"):
                self._begun = False
                # A query that follows without a transaction has nothing to do with them.
                ran, self._ran = self._ran, set()
                return self._order(ran) if text == b"commit" else None
        return None

    def _order(self, ran: set[bytes]) -> _Order | None:
        """Return the order for a COMMIT of these statements."""
        for order in self._proxy.orders:
            if any(order.statement in text for text in ran):
                self._proxy.orders.remove(order)
                return order
        return None

    async def _carry_out(self, order: _Order, commit: bytes) -> None:
        if order.cut != "before":
            self._cut = order
            self._server.write(commit)
            if order.cut == "sent":
                self._client.transport.abort()
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._answered.wait()
            except TimeoutError:
                pass
        self._client.transport.abort()
        self._server.transport.abort()
        order.done.set_result(None)
