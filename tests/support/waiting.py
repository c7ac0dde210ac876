"""Wait in tests for a condition, with a time limit."""

import asyncio
from collections.abc import Callable


async def until(holds: Callable[[], bool], seconds: float) -> None:
    """Return when `holds` returns true. Raise TimeoutError."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)
