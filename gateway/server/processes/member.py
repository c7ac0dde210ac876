"""A process of several, as it sees itself: what its supervisor tells it, and what it asks."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from aiohttp import web

from gateway.server.processes.channel import Gone, Handler, open_channel
from gateway.server.processes.child import ANSWER_SECONDS, VARIABLE, Start
from gateway.server.processes.shared_counters import SharedCounters

NODE_SECONDS = ANSWER_SECONDS + 1.0
PATIENCE_SECONDS = 1.0
"""After this time a process that can serve says so, though its supervisor does not respond."""
SILENT = "the supervisor of this node's processes does not respond"


class Member:
    """The connection of this process with its supervisor.

    `handlers` answers the supervisor's calls. It is filled before `listening` tells that this
    process answers.
    """

    def __init__(self, channel_end: int, memory: int, listening: Sequence[int] = ()) -> None:
        self.handlers: dict[str, Handler] = {}
        self.levels = SharedCounters(memory)
        self.sockets = [socket.socket(fileno=number) for number in listening]
        """The sockets that all processes of the node listen on."""
        self._end = socket.socket(fileno=channel_end)

    @classmethod
    def inherited(cls) -> "Member | None":
        """Return the connection that this process has inherited, None when it runs alone."""
        descriptors = os.environ.pop(VARIABLE, "")
        if not descriptors:
            return None
        channel_end, memory, *listening = map(int, descriptors.split(","))
        return cls(channel_end, memory, listening)

    async def join(self) -> Start:
        """Open the channel; return what the supervisor says."""
        self._channel = await open_channel(self._end, self.handlers)
        return msgspec.json.decode(await self._channel.call("start"), type=Start)

    async def serve(self, greet: Callable[[], Awaitable[None]], stopping: asyncio.Event) -> None:
        """Tell the supervisor that this process answers; return when it shall stop.

        That is when `stopping` is set, or the supervisor has ended.
        """

        async def greeted(_: bytes) -> bytes:
            await greet()
            return b""

        self.handlers["greet"] = greeted
        await self.tell("listening")
        ends = [asyncio.create_task(end.wait()) for end in (stopping, self._channel.closed)]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()

    async def tell(self, name: str, body: bytes = b"") -> None:
        """Call the supervisor, if it still runs."""
        try:
            await self._ask(name, body)
        except (Gone, TimeoutError):
            return

    async def faults(self, own: Callable[[], Awaitable[list[str]]]) -> list[str]:
        """Return why the node is not ready, by all of its processes.

        While the supervisor does not respond, `own` tells: this process serves without it.
        """
        question = asyncio.create_task(self._ask("readiness"), name="readiness")
        faults = await own()
        try:
            seconds = NODE_SECONDS if faults else PATIENCE_SECONDS
            answer = await asyncio.wait_for(question, seconds)
            return msgspec.json.decode(answer, type=list[str])
        except (Gone, TimeoutError):
            return [*faults, SILENT] if faults else []

    async def metrics(self) -> bytes | None:
        """Return the metrics of the node, None when the supervisor does not respond."""
        try:
            return await self._ask("metrics")
        except (Gone, TimeoutError):
            return None

    async def close(self) -> None:
        """Close the channel."""
        await self._channel.close()

    async def _ask(self, name: str, body: bytes = b"") -> bytes:
        async with asyncio.timeout(NODE_SECONDS):
            return await self._channel.call(name, body)


MEMBER: web.AppKey[Member | None] = web.AppKey("MEMBER")
