"""Attacks by what a form says of itself, by somebody without an account."""

from __future__ import annotations

import asyncio

import aiohttp

from tests.system.attacks.attack import Attack, Target

MEBIBYTE = 1 << 20
URLENCODED = "application/x-www-form-urlencoded"
PATH = "/console/sign-in"
# Read in punycode, each character goes before all others, so the decoder copies them each time.
INSERTIONS = b"email=-" + b"a" * (MEBIBYTE // 8)
PART = b'--B\r\nContent-Disposition: form-data; name="email"\r\n\r\na\r\n'
PATIENCE = aiohttp.ClientTimeout(total=90)


async def punycode(target: Target) -> int:
    """A body in a character set whose decoder takes the square of its length."""
    return await _post(target, INSERTIONS, f"{URLENCODED}; charset=punycode", 2)


async def parts(target: Target) -> int:
    """As many parts as a multipart form may have, each of which is parsed on its own."""
    body = PART * 999 + b"--B--\r\n"
    return await _post(target, body, "multipart/form-data; boundary=B", 10)


async def megabytes(target: Target) -> int:
    """Forms of a megabyte, percent-encoded throughout, past what an address may try."""
    return await _post(target, b"email=" + b"%41" * (MEBIBYTE // 3 - 10), URLENCODED, 30)


async def many_fields(target: Target) -> int:
    """Forms of the most bytes with as many fields as fit."""
    return await _post(target, b"a=b&" * 16_000, URLENCODED, 30)


async def _post(target: Target, body: bytes, kind: str, times: int) -> int:
    async with aiohttp.ClientSession(target.address, timeout=PATIENCE) as http:

        async def once() -> None:
            try:
                async with http.post(PATH, data=body, headers={"Content-Type": kind}) as response:
                    await response.read()
            except (aiohttp.ClientError, TimeoutError):
                # Refused before all of it was sent, or never answered.
                return

        for _ in range(0, times, 10):
            await asyncio.gather(*(once() for _ in range(min(times, 10))))
    return times


ATTACKS = (
    Attack("punycode form", punycode),
    Attack("multipart form of 999 parts", parts),
    Attack("forms of a megabyte", megabytes),
    Attack("forms of 16,000 fields", many_fields),
)
