"""Attacks by bodies of JSON that are short to send and long to take apart, with one key."""

from __future__ import annotations

import asyncio
import gzip

import aiohttp

from gateway.records.values.strictjson import MOST_VALUES
from tests.system.attacks.attack import Attack, Target

MEBIBYTE = 1 << 20
PATH = "/api/contacts"
ROUNDS = 3
AT_ONCE = 10
PATIENCE = aiohttp.ClientTimeout(total=90)


PARTS = (
    (b'{"name":"a","more":[', b"1.1,", b"1]}"),
    (b'{"name":"a",', b'"b":1.1,', b'"b":1.1}'),
    (b'{"name":"a","tags":[', b'"a",', b'"a"]}'),
    (b'{"name":"a","more":[', b"{},", b"{}]}"),
)
"""How a body begins, what it repeats, how it ends."""


def _bodies(most: int) -> list[bytes]:
    """Compressed bodies of a mebibyte, or of fewer repeats if that is more than `most`."""
    found = []
    for before, piece, after in PARTS:
        times = (MEBIBYTE - len(before) - len(after)) // len(piece)
        found.append(gzip.compress(before + piece * min(times, most) + after))
    return found


async def many_values(target: Target) -> int:
    """Bodies of hundreds of thousands of values, which compressed are a few kilobytes."""
    return await _post(target, _bodies(MEBIBYTE))


async def as_many_values_as_may_be(target: Target) -> int:
    """Bodies that are just not refused for the number of their values."""
    return await _post(target, _bodies(MOST_VALUES // 2 - 10))


async def _post(target: Target, bodies: list[bytes]) -> int:
    headers = {
        "X-API-Key": target.keys[0], "Content-Type": "application/json", "Content-Encoding": "gzip",
    }  # fmt: skip
    async with aiohttp.ClientSession(target.address, timeout=PATIENCE, headers=headers) as http:

        async def once(body: bytes) -> None:
            async with http.post(PATH, data=body) as answer:
                await answer.read()

        for body in bodies * ROUNDS:
            await asyncio.gather(*(once(body) for _ in range(AT_ONCE)))
    return len(bodies) * ROUNDS * AT_ONCE


ATTACKS = (
    Attack("bodies of very many values", many_values),
    Attack("bodies of as many values as may be", as_many_values_as_may_be),
)
