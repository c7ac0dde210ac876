"""The load: keep-alive clients on bare sockets, in a separate process.

It is as fast as Python allows, so that the server is the bottleneck (benchmark `load_generator`
shows by how much). It reads one JSON object and prints one JSON line. With a `total` it ends after
that many requests, or after `seconds`. Times are seconds of CLOCK_MONOTONIC, which all processes of
a machine share.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, cast

import uvloop

from tests.benchmarks.figures import quantile

PATIENCE = 30.0


class Client(asyncio.Protocol):
    """One connection with at most one open request."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._buffer = b""
        self._wanted = 0
        self._status = b""
        self._transport: asyncio.Transport | None = None
        self.began = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def send(self, request: bytes) -> None:
        assert self._transport is not None
        self.began = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        if not self._wanted:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                self._buffer = buffer
                return
            head = buffer[:end].lower()
            self._status = head[9:12]
            at = head.find(b"\r\ncontent-length:")
            length = 0
            if at >= 0:
                line_end = head.find(b"\r\n", at + 17)
                length = int(head[at + 17 : line_end if line_end > 0 else end])
            self._wanted = end + 4 + length
        if len(buffer) < self._wanted:
            self._buffer = buffer
            return
        self._buffer = b""
        self._wanted = 0
        self._load.answered(self, int(self._status), buffer)

    def connection_lost(self, error: Exception | None) -> None:
        self._load.lost(self)


class Load:
    """The shared state of all clients: the requests, the clock and the counts."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._requests = [text.encode("latin-1") for text in spec["requests"]]
        self._expected = int(spec["expect"])
        self._next = 0
        self._measure_from = float("inf")
        self._until = float("inf")
        self._began = 0.0
        self._left = int(spec.get("total") or sys.maxsize)
        self._per_second = float(spec.get("per_second") or 0)
        self._keep = bool(spec.get("keep_answers"))
        # First in, first out: the server closes connections that are idle for long.
        self._free: deque[Client] = deque()
        self._waiting = 0
        self._under_way = 0
        self.count = 0
        self.bad = 0
        self.gone = 0
        self.late = 0
        self.seconds: list[float] = []
        self.answers: list[dict[str, Any]] = []
        self._idle = asyncio.Event()

    async def run(self, spec: dict[str, Any]) -> dict[str, Any]:
        """Connect, send the load, and return the report."""
        loop = asyncio.get_running_loop()
        clients: list[Client] = []
        for _ in range(int(spec["connections"])):
            _, client = await loop.create_connection(
                lambda: Client(self), spec.get("host", "127.0.0.1"), int(spec["port"])
            )
            clients.append(client)
        now = time.perf_counter()
        self._measure_from = now + float(spec.get("warm_up", 0))
        self._until = self._measure_from + float(spec["seconds"])
        self._began = now
        if self._per_second:
            self._free.extend(clients)
            await self._paced(now)
        else:
            for client in clients[: self._left]:
                self._start(client)
        async with asyncio.timeout(max(self._until - now, 0) + PATIENCE):
            await self._idle.wait()
        return self._report(float(spec["seconds"]))

    async def _paced(self, began: float) -> None:
        """Send at a fixed rate whatever the responses; requests without a free connection wait."""
        step = 1 / self._per_second
        due = began
        # A response in the last slot, before its request, is not the last one.
        end, self._until = self._until, float("inf")
        while due < end:
            pause = due - time.perf_counter()
            if pause > 0:
                await asyncio.sleep(pause)
            if self._free:
                self._start(self._free.popleft())
            else:
                self._waiting += 1
                self.late += 1
            due += step
        self._until = time.perf_counter()
        if not self._under_way:
            self._idle.set()

    def _start(self, client: Client) -> None:
        request = self._requests[self._next]
        self._next = (self._next + 1) % len(self._requests)
        self._under_way += 1
        self._left -= 1
        client.send(request)

    def answered(self, client: Client, status: int, answer: bytes) -> None:
        now = time.perf_counter()
        self._under_way -= 1
        if status != self._expected:
            self.bad += 1
        elif self._measure_from <= now and (self._per_second or now < self._until):
            self.count += 1
            self.seconds.append(now - client.began)
        if self._keep:
            body = answer[answer.find(b"\r\n\r\n") + 4 :]
            self.answers.append(
                {"began": client.began, "answered": now, "body": body.decode("utf-8", "replace")}
            )
        if not self._per_second:
            if now < self._until and self._left:
                self._start(client)
        elif self._waiting:
            self._waiting -= 1
            self._start(client)
        else:
            self._free.append(client)
        if not self._under_way and (now >= self._until or not self._left):
            self._idle.set()

    def lost(self, client: Client) -> None:
        if time.perf_counter() < self._until:
            self.gone += 1
            self._idle.set()

    def _report(self, seconds: float) -> dict[str, Any]:
        taken: Sequence[float] = self.seconds or [float("nan")]
        return {
            "rate": self.count / seconds,
            "count": self.count,
            "began": self._began,
            "bad": self.bad,
            "gone": self.gone,
            "late": self.late,
            "p50_ms": quantile(taken, 0.5) * 1000,
            "p99_ms": quantile(taken, 0.99) * 1000,
            "answers": self.answers,
        }


def request(method: str, path: str, body: bytes = b"", **headers: str) -> str:
    """Return one HTTP/1.1 request as text for the `requests` of a spec."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Accept: */*"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]) + body.decode("latin-1")


async def main(spec: dict[str, Any]) -> None:
    print(json.dumps(await Load(spec).run(spec)), flush=True)


if __name__ == "__main__":
    uvloop.run(main(json.load(sys.stdin)))
