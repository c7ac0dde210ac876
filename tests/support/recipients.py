"""Receivers of webhooks in a separate process, with a log of all their requests.

Run as a module, this is the process: many ports of 127.0.0.1 that each respond 2xx after a short
random time and print requests and responses with their times. Times are CLOCK_MONOTONIC, the same
in every process of a machine.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.architecture.tree import ROOT
from tests.support.waiting import HANG_SECONDS


@dataclass(slots=True)
class Receipt:
    """One completely read request. `answered` is the time of its 2xx, if it got one."""

    port: int
    path: str
    event_id: str
    attempt: int
    digest: str
    at: float
    answered: float | None = None
    gone: float | None = None
    agent: str = ""
    """User-Agent: identifies the node, when each has its own service name."""
    traceparent: str = ""

    def open_at(self, moment: float) -> bool:
        """Return whether it was being handled at that time."""
        ends = [t for t in (self.answered, self.gone) if t is not None]
        return self.at <= moment and (not ends or moment < min(ends))


@dataclass
class Recipients:
    """The parent's side: the received requests and the receivers' behaviour."""

    ports: list[int]
    process: Process
    got: list[Receipt] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(
        self, enough: Callable[[list[Receipt]], bool], seconds: float = HANG_SECONDS
    ) -> None:
        """Wait until `enough(got)`."""
        async with asyncio.timeout(seconds):
            while not enough(self.got):
                self._changed.clear()
                await self._changed.wait()

    def behave(self, **settings: Any) -> None:
        """Change the responses from now on.

        `latency=[low, high]` seconds; `status`; `failing`, the share of requests answered 500;
        `down=[…]`, prefixes of paths that get 500; `hang=[…]`, prefixes of paths whose requests are
        read and not answered; `release=True`, answer hanging requests now, and let none hang any
        more.
        """
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(settings).encode() + b"\n")

    async def read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            what, *rest = json.loads(line)
            if what == "in":
                *words, agent, traceparent = rest
                receipt = Receipt(*words)
                receipt.agent, receipt.traceparent = agent, traceparent
                self.got.append(receipt)
            elif what == "out":
                self.got[rest[0]].answered = rest[1]
            else:
                self.got[rest[0]].gone = rest[1]
            self._changed.set()


@asynccontextmanager
async def recipients(
    count: int, *, seed: int = 0, latency: tuple[float, float] = (0.0, 0.0)
) -> AsyncIterator[Recipients]:
    """Run `count` receivers that respond 200 after a time drawn from `latency`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.recipients", str(count), str(seed),
        cwd=ROOT, stdin=PIPE, stdout=PIPE, start_new_session=True, limit=2**20,
    )  # fmt: skip
    assert process.stdout is not None
    reader: asyncio.Task[None] | None = None
    try:
        async with asyncio.timeout(HANG_SECONDS):
            ports = json.loads(await process.stdout.readline())
        there = Recipients(ports, process)
        there.behave(latency=latency)
        reader = asyncio.create_task(there.read())
        yield there
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        if reader is not None:
            await reader


class _House:
    """The child's side: one behaviour and one log for all ports."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.latency = (0.0, 0.0)
        self.status = 200
        self.failing = 0.0
        self.hang: tuple[str, ...] = ()
        self.down: tuple[str, ...] = ()
        self.hanging: list[_Caller] = []
        self.count = 0

    def obey(self, line: bytes) -> None:
        settings = json.loads(line)
        self.latency = tuple(settings.get("latency", self.latency))
        self.status = settings.get("status", self.status)
        self.failing = settings.get("failing", self.failing)
        self.hang = tuple(settings.get("hang", self.hang))
        self.down = tuple(settings.get("down", self.down))
        if settings.get("release"):
            self.hang = ()
            waiting, self.hanging = self.hanging, []
            for caller in waiting:
                caller.answer()

    def tell(self, *words: Any) -> None:
        os.write(1, json.dumps(words).encode() + b"\n")


class _Caller(asyncio.Protocol):
    """One connection: requests one after another, as our sender makes them."""

    def __init__(self, house: _House) -> None:
        self._house = house
        self._buffer = b""
        self._number: int | None = None
        self._path = ""
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, mark, rest = self._buffer.partition(b"\r\n\r\n")
        if not mark:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): text.strip() for name, _, text in (s.partition(":") for s in lines)
        }
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        self._take(first.split(" ")[1], headers, rest[:length])

    def _take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        house, transport = self._house, self._transport
        assert transport is not None
        self._number, house.count = house.count, house.count + 1
        self._path = path
        house.tell(
            "in",
            transport.get_extra_info("sockname")[1],
            path,
            headers.get("x-webhook-id", ""),
            int(headers.get("x-webhook-attempt", "0")),
            hashlib.sha256(body).hexdigest(),
            time.monotonic(),
            headers.get("user-agent", ""),
            headers.get("traceparent", ""),
        )
        if path.startswith(house.hang):
            house.hanging.append(self)
            return
        wait = house.dice.uniform(*house.latency)
        self._timer = asyncio.get_running_loop().call_later(wait, self.answer)

    def answer(self) -> None:
        house, transport = self._house, self._transport
        if self._number is None or transport is None or transport.is_closing():
            return
        down = self._path.startswith(house.down)
        status = 500 if down or house.dice.random() < house.failing else house.status
        transport.write(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode())
        if 200 <= status < 300:
            house.tell("out", self._number, time.monotonic())
        self._number = None

    def connection_lost(self, error: Exception | None) -> None:
        # A receiver whose caller disconnects drops the work: that request got no response.
        if self._timer is not None:
            self._timer.cancel()
        if self._number is not None:
            self._house.tell("gone", self._number, time.monotonic())
            self._number = None


async def _main(count: int, seed: int) -> None:
    loop = asyncio.get_running_loop()
    house = _House(seed)
    servers = [
        await loop.create_server(lambda: _Caller(house), "127.0.0.1", 0) for _ in range(count)
    ]
    house.tell(*(server.sockets[0].getsockname()[1] for server in servers))
    orders = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    # Standard input ends when the test does, however it ends.
    async for line in orders:
        house.obey(line)


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]), int(sys.argv[2])))
