"""Waiting in tests for what must come true, with a bound."""

import asyncio
from collections.abc import Callable


async def until(holds: Callable[[], bool], seconds: float) -> None:
    """Return when `holds` does. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)
