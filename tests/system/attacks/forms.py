"""Attacks by what a form says of itself."""

from __future__ import annotations

import aiohttp

from tests.system.attacks.attack import Attack, Target

MEBIBYTE = 1 << 20
TIMES = 3


async def punycode(target: Target) -> int:
    """A megabyte in a character set whose decoder takes the square of its length."""
    kind = "application/x-www-form-urlencoded; charset=punycode"
    return await _post(target, b"email=" + b"a" * MEBIBYTE, kind)


async def _post(target: Target, body: bytes, kind: str) -> int:
    timeout = aiohttp.ClientTimeout(total=90)
    async with aiohttp.ClientSession(target.address, timeout=timeout) as http:
        for _ in range(TIMES):
            headers = {"Content-Type": kind}
            try:
                async with http.post("/console/sign-in", data=body, headers=headers) as response:
                    await response.read()
            except aiohttp.ClientError:
                continue
    return TIMES


ATTACKS = (Attack("punycode form", punycode),)
