"""Calls in both directions between the supervisor and one of its processes, over a socket pair."""

import asyncio
import itertools
import socket
from collections.abc import Awaitable, Callable, Mapping

import msgspec
from msgspec import Struct

from gateway.server.telemetry import logs

Handler = Callable[[bytes], Awaitable[bytes]]

SIZE_BYTES = 4


class Gone(Exception):
    """The other side has closed the channel, or failed to answer."""


class Call(Struct, frozen=True, tag="call", array_like=True):
    number: int
    name: str
    body: bytes


class Reply(Struct, frozen=True, tag="reply", array_like=True):
    number: int
    body: bytes | None
    """None when the call failed there."""


ENCODER = msgspec.msgpack.Encoder()
DECODER = msgspec.msgpack.Decoder(Call | Reply)


class Channel:
    """One end: `handlers` answers the calls of the other end by name, until `closed` is set."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        handlers: Mapping[str, Handler],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._handlers = handlers
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self.closed = asyncio.Event()
        self._reading = asyncio.create_task(self._read(), name="channel")

    async def call(self, name: str, body: bytes = b"") -> bytes:
        """Call `name` at the other end and return its answer. Raise Gone."""
        if self.closed.is_set():
            raise Gone
        number = next(self._numbers)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._send(Call(number, name, body))
        try:
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        """Close this end."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        try:
            while True:
                size = int.from_bytes(await self._reader.readexactly(SIZE_BYTES), "big")
                self._got(DECODER.decode(await self._reader.readexactly(size)))
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self.closed.set()
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(Gone())
            self._writer.close()

    def _got(self, message: Call | Reply) -> None:
        if isinstance(message, Call):
            # Not in turn: a call may need calls of its own before it has an answer.
            task = asyncio.create_task(self._answer(message), name=f"channel-{message.name}")
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
            return
        answer = self._waiting.get(message.number)
        if answer is None or answer.done():
            return
        if message.body is None:
            answer.set_exception(Gone())
        else:
            answer.set_result(message.body)

    async def _answer(self, call: Call) -> None:
        body = None
        try:
            body = await self._handlers[call.name](call.body)
        except Gone:
            pass
        except Exception:  # noqa: BLE001 - the caller learns that its call failed
            logs.logger().exception("call_failed", call=call.name)
        if not self.closed.is_set():
            self._send(Reply(call.number, body))

    def _send(self, message: Call | Reply) -> None:
        data = ENCODER.encode(message)
        self._writer.write(len(data).to_bytes(SIZE_BYTES, "big") + data)


async def open_channel(end: socket.socket, handlers: Mapping[str, Handler]) -> Channel:
    """Return the channel over this end of a socket pair."""
    end.setblocking(False)
    reader, writer = await asyncio.open_unix_connection(sock=end)
    return Channel(reader, writer, handlers)
