"""Another user beside an attack: the times of a search, a page and a write."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

import aiohttp

from tests.system.attacks.attack import Target

SECONDS = 1.0
TIMES = 1.5
"""Limit of their 99th percentile, in seconds or as a multiple of the value without the attack."""
ROUNDS = 20
PAUSE_SECONDS = 0.1
SEARCH = "/api/contacts?search=maria"


async def beside(target: Target, attack: Callable[[], Awaitable[int]]) -> int:
    """Run an attack of the first owner while the second one works; findings go to the target."""
    timeout = aiohttp.ClientTimeout(total=60)
    headers = {"X-API-Key": target.keys[1]}
    async with aiohttp.ClientSession(target.address, timeout=timeout, headers=headers) as http:
        alone: list[float] = []
        for _ in range(ROUNDS):
            alone += await _round(http, target)
        among: list[float] = []
        working = asyncio.create_task(_work(http, target, among))
        try:
            requests = await attack()
            # One whole round begins after the attack, to measure its aftermath too.
            among += await _round(http, target)
        finally:
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working
    before, after = _p99(alone), _p99(among)
    if after > max(SECONDS, TIMES * before):
        target.findings.append(f"somebody else waits {after:.2f} s instead of {before:.2f} s")
    return requests


async def _work(http: aiohttp.ClientSession, target: Target, took: list[float]) -> None:
    while True:
        took += await _round(http, target)
        await asyncio.sleep(PAUSE_SECONDS)


async def _round(http: aiohttp.ClientSession, target: Target) -> list[float]:
    took = []
    for method, path, body in (
        ("GET", SEARCH, None), ("GET", "/api/contacts", None),
        ("POST", "/api/contacts", {"name": "Maria"}),
    ):  # fmt: skip
        began = time.monotonic()
        async with http.request(method, path, json=body) as answer:
            await answer.read()
            if answer.status >= 400:
                target.findings.append(f"somebody else's {method} {path} got {answer.status}")
        took.append(time.monotonic() - began)
    return took


def _p99(took: list[float]) -> float:
    return sorted(took)[max(0, round(len(took) * 0.99) - 1)]
