"""One process as its supervisor sees it: started, asked, ended."""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from gateway.server.config import Config
from gateway.server.processes.channel import Channel, Gone, Handler, open_channel
from gateway.server.processes.sums import Families, add, dropped, parse

T = TypeVar("T")

VARIABLE = "CARTEIRO_PROCESS"
"""The descriptors that a process inherits: its end of the channel, the rate limits' memory, and the
sockets that listen."""
ANSWER_SECONDS = 3.0
"""Longer than a process lets its database take for a probe of its readiness."""


class Start(Struct, frozen=True):
    """What a process is told at its start; its own reading of the configuration may be newer."""

    config: Config
    place: int


class Child:
    """A process of the node, in the place with this number.

    `past` are the node's past metrics, to which the counts of dropped series are added.
    """

    def __init__(self, start: Start, inherited: Sequence[int], past: Families) -> None:
        self.place = start.place
        self.may_start = asyncio.Event()
        self.listening = asyncio.Event()
        self.leaving = False
        """Whether it has begun to stop by itself."""
        self.works = False
        self.silent = False
        """Whether it does not answer now."""
        self.node_id = ""
        """The name under which it claims deliveries."""
        self.fault: str | None = None
        """Why it could not start, in its own words."""
        self._start = start
        self._inherited = tuple(inherited)
        self._process: Process | None = None
        self._channel: Channel | None = None
        self._past = past
        self.counted: Families = {}
        """Its metrics when it was asked last."""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def ready(self) -> bool:
        """Whether it answers requests, and will go on."""
        return self.listening.is_set() and not self.leaving

    async def start(self, handlers: dict[str, Handler]) -> None:
        """Start it by the command line of this process. Raise OSError if the system refuses."""
        ours, theirs = socket.socketpair()
        with theirs:
            descriptors = (theirs.fileno(), *self._inherited)
            environment = os.environ | {VARIABLE: ",".join(map(str, descriptors))}
            try:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    *sys.orig_argv[1:],
                    env=environment,
                    pass_fds=descriptors,
                )
            except OSError:
                ours.close()
                raise
        own: dict[str, Handler] = {
            "start": self._told,
            "listening": self._listens,
            "failed": self._failed,
            "last": self._last,
        }
        self._channel = await open_channel(ours, own | handlers)

    async def ended(self) -> int:
        """Wait for its end; return its status, negative for the signal that ended it."""
        assert self._process is not None
        status = await self._process.wait()
        if self._channel is not None:
            # What it has sent before its end is still to be read.
            await self._channel.closed.wait()
        return status

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def ask(self, name: str, body: bytes = b"", seconds: float = ANSWER_SECONDS) -> bytes:
        """Return its answer. Raise Gone or TimeoutError."""
        if self._channel is None:
            raise Gone
        async with asyncio.timeout(seconds):
            return await self._channel.call(name, body)

    async def look(self, seconds: float = ANSWER_SECONDS) -> None:
        """Ask whether it is alive, and for its name."""
        self.node_id = (await self.ask("alive", seconds=seconds)).decode()

    async def count(self) -> Families:
        """Ask for its metrics, keep and return them."""
        self._keep(await self.ask("metrics"))
        return self.counted

    async def _told(self, _: bytes) -> bytes:
        await self.may_start.wait()
        return msgspec.json.encode(self._start)

    async def _listens(self, _: bytes) -> bytes:
        self.listening.set()
        return b""

    async def _failed(self, body: bytes) -> bytes:
        self.fault = body.decode()
        return b""

    async def _last(self, body: bytes) -> bytes:
        self._keep(body)
        return b""

    def _keep(self, exposition: bytes) -> None:
        counted = parse(exposition.decode())
        add(self._past, dropped(self.counted, counted))
        self.counted = counted


async def ask_all(children: list[Child], ask: Callable[[Child], Awaitable[T]]) -> list[T | None]:
    """Ask all at once; None stands for one that did not answer."""

    async def one(child: Child) -> T | None:
        try:
            return await ask(child)
        except (Gone, TimeoutError):
            return None

    return list(await asyncio.gather(*map(one, children)))
