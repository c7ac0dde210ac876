"""The receiver: a bare program of its own that answers 200 at once.

How a path is answered:
- /after/MS/… is answered that much later;
- /turn/GROUP/MS/… as well, once `GET /turn/GROUP` was asked; with 0 it is never answered then.

`GET /count` says how many requests were answered, and when the first and the latest; `GET /report`
also gives and forgets what arrived.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.request import urlopen

import uvloop

from tests.benchmarks.load import Wire

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@dataclass
class Seen:
    """All requests that have arrived; the times are of CLOCK_MONOTONIC."""

    count: int = 0
    first: float = 0.0
    latest: float = 0.0
    turned: set[str] = field(default_factory=set)
    rows: list[tuple[str, str, int]] = field(default_factory=list)
    """Path, event id and wall clock in microseconds of each arrival that is answered."""


class Connection(Wire):
    """One sender's connection."""

    def __init__(self, seen: Seen) -> None:
        super().__init__()
        self._seen = seen

    def message(self, head: bytes) -> None:
        seen = self._seen
        method, path = head[: head.find(b" http/")].decode().split(" ")
        if method == "get":
            self._ask(path)
            return
        kind, *parts = path[1:].split("/")
        wait_ms = 0
        if kind == "after":
            wait_ms = int(parts[0])
        elif kind == "turn" and parts[0] in seen.turned:
            wait_ms = int(parts[1])
            if not wait_ms:
                return
        if wait_ms:
            asyncio.get_running_loop().call_later(wait_ms / 1000, self.write, OK)
        else:
            self.write(OK)
        seen.count += 1
        seen.latest = time.perf_counter()
        seen.first = seen.first or seen.latest
        at = head.find(b"x-webhook-id: ") + 14
        seen.rows.append((path, head[at : at + 24].decode(), time.time_ns() // 1000))

    def _ask(self, path: str) -> None:
        seen = self._seen
        if path.startswith("/turn/"):
            seen.turned.add(path[6:])
        found: dict[str, Any] = {"count": seen.count, "first": seen.first, "latest": seen.latest}
        if path == "/report":
            found["rows"], seen.rows, seen.first = seen.rows, [], 0.0
        body = json.dumps(found).encode()
        self.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


def told(port: int, what: str) -> Any:
    """Return what the receiver at `port` answers to `GET /what`."""
    with urlopen(f"http://127.0.0.1:{port}/{what}", timeout=60) as answer:
        return json.load(answer)


def arrivals(port: int) -> list[tuple[str, str, int]]:
    """Return arrivals since the previous report: path, event id, wall microseconds."""
    return [(path, event, at) for path, event, at in told(port, "report")["rows"]]


async def main() -> None:
    seen, loop = Seen(), asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(seen), "127.0.0.1", 0, backlog=4096)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
