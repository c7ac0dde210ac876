"""Clients that send or read slowly, or say much at once; each returns what it got."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from tests.system.attacks.attack import Target

SECONDS = 20.0
CLIENTS = 400


async def held(
    says: str, drips: str, number: int | None, target: Target, *, again: float = 1.0
) -> Counter[int]:
    """Hold CLIENTS connections that have said this, add `drips` each second, and read one line.

    `{key}` in what is said is the key of an owner. One that is closed connects again.
    """
    key = "" if number is None else f"X-API-Key: {target.keys[number]}\r\n"
    start, more, got = says.replace("{key}", key).encode(), drips.encode(), Counter[int]()
    loop = asyncio.get_running_loop()
    end = loop.time() + SECONDS

    async def one() -> None:
        while loop.time() < end:
            with suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await _connected(target)
                try:
                    writer.write(start)
                    answer = asyncio.create_task(reader.readline())
                    while loop.time() < end and not answer.done():
                        await asyncio.wait({answer}, timeout=1.0)
                        writer.write(more)
                    line = answer.result() if answer.done() else b""
                    answer.cancel()
                    got[int(line[9:12]) if line[:4] == b"HTTP" else 0] += 1
                finally:
                    writer.transport.abort()
            await asyncio.sleep(again)

    await _together(one, CLIENTS)
    return got


async def unread(paths: Sequence[str], at_once: int, target: Target) -> Counter[int]:
    """Send so many requests at once on each of 50 connections, again and again; read nothing."""
    got, loop = Counter[int](), asyncio.get_running_loop()
    end = loop.time() + SECONDS
    head = f"Host: a\r\nX-API-Key: {target.keys[0]}\r\n\r\n"
    said = "".join(f"GET {path} HTTP/1.1\r\n{head}" for path in paths).encode()

    async def one() -> None:
        while loop.time() < end:
            with suppress(OSError):
                _, writer = await _connected(target)
                try:
                    for _ in range(at_once // len(paths)):
                        writer.write(said)
                        async with asyncio.timeout_at(end):
                            await writer.drain()
                        got[200] += len(paths)
                    async with asyncio.timeout_at(end):
                        await writer.wait_closed()
                except TimeoutError:
                    pass
                finally:
                    writer.transport.abort()
            await asyncio.sleep(0.1)

    await _together(one, 50)
    return got


async def exports(target: Target) -> Counter[int]:
    """Read large exports of eight owners slowly; a small one and a large one come through."""
    got: Counter[int] = Counter()
    writers = []
    for key in target.keys[2:]:
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port, limit=4_096)
        writer.write(
            f"GET /api/export/contacts.csv HTTP/1.1\r\nHost: a\r\nX-API-Key: {key}\r\n\r\n".encode()
        )
        got[int((await reader.readline())[9:12])] += 1
        writers.append(writer)
    for number, longest in ((1, 5.0), (0, 40.0)):
        try:
            async with asyncio.timeout(longest), target.client(number) as http:
                async with http.get("/api/export/contacts.csv") as answer:
                    await answer.read()
                    got[answer.status] += 1
        except TimeoutError:
            target.findings.append(f"an export takes more than {longest:.0f} s")
    for writer in writers:
        writer.transport.abort()
    return got


async def _connected(target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    wire = socket.socket()
    wire.setblocking(False)
    # Little that is unread fits on this side.
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    await asyncio.get_running_loop().sock_connect(wire, ("127.0.0.1", target.port))
    return await asyncio.open_connection(sock=wire, limit=1_024)


async def _together(one: Callable[[], Awaitable[None]], count: int) -> None:
    tasks = list[asyncio.Future[None]]()
    for _ in range(count):
        tasks.append(asyncio.ensure_future(one()))
        await asyncio.sleep(0.005)
    await asyncio.gather(*tasks)
