"""Attacks that keep connections open, without an account."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from tests.system.attacks.attack import Attack, Target

ADDRESSES = ("127.0.0.2", "127.0.0.3")
EACH = 500
SECONDS = 6.0
APART_SECONDS = 0.005
OTHERS = 20
DRIP = b"GET /api/contacts HTTP/1.1\r\nHost: a\r\nX-Drip: "
BODY = b"POST /api/auth/token HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n{"


async def idle(target: Target) -> int:
    """Open a thousand silent connections, from two addresses."""
    return await _occupy(target, b"")


async def dripping_heads(target: Target) -> int:
    """Send a thousand heads without an end, from two addresses."""
    return await _occupy(target, DRIP)


async def dripping_bodies(target: Target) -> int:
    """Send a thousand bodies without an end, from two addresses."""
    return await _occupy(target, BODY)


async def _occupy(target: Target, says: bytes) -> int:
    async with _held(target, says) as writers:
        # Others are served meanwhile, each on its own connection.
        timeout = aiohttp.ClientTimeout(total=10)
        headers = {"X-API-Key": target.keys[1], "Connection": "close"}
        async with aiohttp.ClientSession(target.address, timeout=timeout) as http:
            for _ in range(OTHERS):
                async with http.get("/api/me", headers=headers) as response:
                    if response.status != 200:
                        target.findings.append(f"another account got {response.status}")
        for _ in range(int(SECONDS)):
            for writer in writers:
                if says == DRIP and not writer.is_closing():
                    writer.write(b"x")
            await asyncio.sleep(1.0)
    return len(writers)


@asynccontextmanager
async def _held(target: Target, says: bytes) -> AsyncIterator[list[asyncio.StreamWriter]]:
    writers = []
    try:
        for address in ADDRESSES:
            for _ in range(EACH):
                _, writer = await asyncio.open_connection(
                    "127.0.0.1", target.port, local_addr=(address, 0)
                )
                writers.append(writer)
                if says:
                    writer.write(says)
                # The measurement covers open connections, not their simultaneous arrival.
                await asyncio.sleep(APART_SECONDS)
        yield writers
    finally:
        for writer in writers:
            writer.transport.abort()
        await asyncio.gather(*(w.wait_closed() for w in writers), return_exceptions=True)


ATTACKS = (
    Attack("idle connections", idle),
    Attack("heads that drip", dripping_heads),
    Attack("bodies that drip", dripping_bodies),
)
