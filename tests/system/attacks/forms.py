"""Attacks by the declared type of a form, without an account."""

from __future__ import annotations

import asyncio

import aiohttp

from tests.system.attacks.attack import Attack, Target

MEBIBYTE = 1 << 20
URLENCODED = "application/x-www-form-urlencoded"
PATH = "/console/sign-in"
# In punycode, each character comes before all others, so the decoder copies them each time.
INSERTIONS = b"email=-" + b"a" * (MEBIBYTE // 8)
PART = b'--B\r\nContent-Disposition: form-data; name="email"\r\n\r\na\r\n'
PATIENCE = aiohttp.ClientTimeout(total=90)


async def punycode(target: Target) -> int:
    """Send a body in a character set whose decoder takes quadratic time."""
    return await _post(target, INSERTIONS, f"{URLENCODED}; charset=punycode", 2)


async def parts(target: Target) -> int:
    """Send the maximum number of parts of a multipart form; each is parsed separately."""
    body = PART * 999 + b"--B--\r\n"
    return await _post(target, body, "multipart/form-data; boundary=B", 10)


async def megabytes(target: Target) -> int:
    """Send forms of a megabyte, percent-encoded throughout, above the rate of an address."""
    return await _post(target, b"email=" + b"%41" * (MEBIBYTE // 3 - 10), URLENCODED, 30)


async def many_fields(target: Target) -> int:
    """Send forms of the maximum size with the maximum number of fields."""
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
