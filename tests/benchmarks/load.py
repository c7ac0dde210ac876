"""The load: keep-alive clients on bare sockets, in a separate process.

It is as fast as Python allows, so that the server is the bottleneck; `write_path` shows by how
much. It reads one JSON object and prints one JSON line. With a `total` it ends after that many
requests, otherwise after `seconds`; `per_second` is a fixed pace, whatever the responses. Times are
seconds of CLOCK_MONOTONIC, which all processes of a machine share.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from abc import abstractmethod
from collections import deque
from itertools import cycle
from typing import Any, cast

import uvloop

from tests.benchmarks.figures import quantile

PATIENCE = 30.0
LONGEST = 900.0
"""Seconds in which a `total` must have been sent."""


class Wire(asyncio.Protocol):
    """One HTTP/1.1 connection, also of the receiver: it finds the end of each message."""

    def __init__(self) -> None:
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    @abstractmethod
    def message(self, head: bytes) -> None:
        """Take the head of a whole message, in lower case."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        while (end := buffer.find(b"\r\n\r\n")) >= 0:
            head = buffer[:end].lower()
            _, _, after = head.partition(b"content-length: ")
            whole = end + 4 + int(after.partition(b"\r")[0] or 0)
            if len(buffer) < whole:
                break
            buffer = buffer[whole:]
            self.message(head)
        self._buffer = buffer


class Client(Wire):
    """One connection with at most one open request."""

    def __init__(self, load: Load) -> None:
        super().__init__()
        self._load = load
        self.began = 0.0

    def message(self, head: bytes) -> None:
        self._load.answered(self, int(head[9:12]))

    def connection_lost(self, error: Exception | None) -> None:
        self._load.lost()


class Load:
    """The shared state of all clients: the requests, the clock and the counts."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec
        self._requests = cycle([text.encode("latin-1") for text in spec["requests"]])
        self._paced = bool(spec.get("per_second"))
        self._seconds = float(spec.get("seconds") or LONGEST)
        self._left = int(spec.get("total") or sys.maxsize)
        self._measure_from = self._until = float("inf")
        # First in, first out: the server closes connections that are idle for long.
        self._free: deque[Client] = deque()
        self._waiting = self._under_way = 0
        self.bad = self.gone = 0
        self.took: list[float] = []
        self._idle = asyncio.Event()

    async def run(self) -> dict[str, Any]:
        """Connect, send the load, and return the report."""
        loop, spec = asyncio.get_running_loop(), self._spec
        for _ in range(int(spec["connections"])):
            _, client = await loop.create_connection(
                lambda: Client(self), "127.0.0.1", int(spec["port"])
            )
            self._free.append(client)
        began = time.perf_counter()
        self._measure_from = began + float(spec.get("warm_up", 0))
        end = self._measure_from + self._seconds
        if self._paced:
            await self._at_pace(began, end, 1 / float(spec["per_second"]))
        else:
            self._until = end
            while self._free and self._left:
                self._start(self._free.popleft())
        async with asyncio.timeout(max(end - began, 0) + PATIENCE):
            await self._idle.wait()
        return {
            "rate": len(self.took) / self._seconds, "count": len(self.took), "began": began,
            "bad": self.bad, "gone": self.gone,
            "p99_ms": quantile(self.took or [float("nan")], 0.99) * 1000,
        }  # fmt: skip

    async def _at_pace(self, due: float, end: float, step: float) -> None:
        """Send at a fixed rate; requests without a free connection wait for one."""
        while due < end:
            await asyncio.sleep(max(due - time.perf_counter(), 0))
            if self._free:
                self._start(self._free.popleft())
            else:
                self._waiting += 1
            due += step
        # Not before: a response in the last slot, before its request, is not the last one.
        self._until = time.perf_counter()
        if not self._under_way:
            self._idle.set()

    def _start(self, client: Client) -> None:
        self._under_way += 1
        self._left -= 1
        client.began = time.perf_counter()
        client.write(next(self._requests))

    def answered(self, client: Client, status: int) -> None:
        now = time.perf_counter()
        self._under_way -= 1
        if status != self._spec["expect"]:
            self.bad += 1
        elif self._measure_from <= now and (self._paced or now < self._until):
            self.took.append(now - client.began)
        if self._paced and not self._waiting:
            self._free.append(client)
        elif self._paced or (now < self._until and self._left):
            self._waiting -= self._paced
            self._start(client)
        if not self._under_way and (now >= self._until or not self._left):
            self._idle.set()

    def lost(self) -> None:
        if time.perf_counter() < self._until:
            self.gone += 1
            self._idle.set()


def request(method: str, path: str, body: bytes = b"", **headers: str) -> str:
    """Return one HTTP/1.1 request as text for the `requests` of a spec."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Accept: */*"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]) + body.decode("latin-1")


if __name__ == "__main__":
    print(json.dumps(uvloop.run(Load(json.load(sys.stdin)).run())), flush=True)
