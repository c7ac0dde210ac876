"""Wait in tests for a condition, with a time limit; and for the next millisecond."""

import asyncio
import time
from collections.abc import Callable


async def until(holds: Callable[[], bool], seconds: float) -> None:
    """Return when `holds` returns true. Raise TimeoutError."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)


async def next_millisecond() -> None:
    """Return when new ids follow those that there are: ids of one millisecond have no order."""
    made_in = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 == made_in:
        await asyncio.sleep(0)
