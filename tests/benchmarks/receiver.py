"""The receiver: a bare asyncio protocol in a process of its own that answers 200 at once.

How a path is answered:
- /hang… is read and never answered, nor is /rank/R for R below N once `GET /hang/N` was asked;
- /after/MS/… is answered that much later;
- /late… is answered after LATE_MS once `GET /late` was asked, until `GET /prompt` is;
- /once… is refused with 500 the first time;
- /half/N is refused where N is odd (or even, `GET /flip` changes it), until `GET /heal` is asked.

`GET /count` says how many requests were answered and when the latest was; `GET /report` gives and
forgets what arrived, when it was started with "record".
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import cast

import uvloop

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
FAULT = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"
LATE_MS = 28_000


class Arrivals:
    """All requests that have arrived."""

    def __init__(self, record: bool) -> None:
        self.record = record
        self.count = 0
        self.hung = 0
        self.latest = 0.0
        """When the latest request was answered, by CLOCK_MONOTONIC."""
        self.late_ms = 0
        self.refused: set[bytes] = set()
        self.odd: int | None = 1
        self.hanging = 0
        self.rows: list[tuple[str, str, int]] = []
        """Path, event id and wall clock in microseconds of each arrival; without hanging ones."""


class Connection(asyncio.Protocol):
    """One sender's connection."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        while True:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                break
            head = buffer[:end]
            at = head.find(b"ontent-Length: ")
            length = 0
            if at >= 0:
                line_end = head.find(b"\r\n", at)
                length = int(head[at + 15 : line_end if line_end > 0 else end])
            whole = end + 4 + length
            if len(buffer) < whole:
                break
            buffer = buffer[whole:]
            self._answer(head)
            if not buffer:
                break
        self._buffer = buffer

    def _answer(self, head: bytes) -> None:
        arrivals = self._arrivals
        transport = self._transport
        assert transport is not None
        if head.startswith(b"POST /hang"):
            arrivals.hung += 1
            return
        if head.startswith(b"POST"):
            path = head[5 : head.find(b" ", 5)]
            if path.startswith(b"/rank/") and int(path[6:]) < arrivals.hanging:
                arrivals.hung += 1
                return
            self._reply(transport, path)
            arrivals.count += 1
            arrivals.latest = time.perf_counter()
            if arrivals.record:
                at = head.find(b"X-Webhook-Id: ") + 14
                row = (path.decode(), head[at : at + 24].decode(), time.time_ns() // 1000)
                arrivals.rows.append(row)
            return
        if head.startswith(b"GET /late"):
            arrivals.late_ms = LATE_MS
        elif head.startswith(b"GET /prompt"):
            arrivals.late_ms = 0
        elif head.startswith(b"GET /hang/"):
            arrivals.hanging = int(head[10 : head.find(b" ", 10)])
        elif head.startswith(b"GET /flip") and arrivals.odd is not None:
            arrivals.odd = 1 - arrivals.odd
        elif head.startswith(b"GET /heal"):
            arrivals.odd = None
        if head.startswith(b"GET /report"):
            rows, arrivals.rows = arrivals.rows, []
            body = json.dumps(rows)
        else:
            told = {"count": arrivals.count, "hung": arrivals.hung, "latest": arrivals.latest}
            body = json.dumps(told)
        transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
        transport.write(body.encode())

    def _reply(self, transport: asyncio.Transport, path: bytes) -> None:
        wait_ms = 0
        if path.startswith(b"/after/"):
            wait_ms = int(path.split(b"/", 3)[2])
        elif path.startswith(b"/late"):
            wait_ms = self._arrivals.late_ms
        elif path.startswith(b"/once") and path not in self._arrivals.refused:
            self._arrivals.refused.add(path)
            transport.write(FAULT)
            return
        elif path.startswith(b"/half/") and int(path[6:]) % 2 == self._arrivals.odd:
            transport.write(FAULT)
            return
        if wait_ms:
            asyncio.get_running_loop().call_later(wait_ms / 1000, transport.write, OK)
        else:
            transport.write(OK)


async def main(record: bool) -> None:
    arrivals = Arrivals(record)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(arrivals), "127.0.0.1", 0, backlog=4096)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main("record" in sys.argv[1:]))
