"""Wait in tests for a condition, with a limit that only a hang reaches.

No other module of the daily tests looks at a clock or sleeps.
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
SECONDS = 120.0
LOOK_SECONDS = 0.02


async def until(holds: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Return when `holds` returns true. Raise TimeoutError."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)


async def until_true(look: Callable[[], Awaitable[T]], seconds: float = SECONDS) -> T:
    """Return the result of `look`, once it is true. Raise TimeoutError."""
    async with asyncio.timeout(seconds):
        while not (result := await look()):
            await asyncio.sleep(LOOK_SECONDS)
        return result


def wait_until(
    holds: Callable[[], bool], told: Callable[[], object] = str, seconds: float = SECONDS
) -> None:
    """Return when `holds` returns true, outside an event loop; a failure shows what is `told`."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, told()
        time.sleep(LOOK_SECONDS)


async def in_time(holds: Callable[[], bool | Awaitable[bool]], seconds: float = SECONDS) -> bool:
    """Wait until `holds()`; return whether it did in time."""
    end = time.monotonic() + seconds
    while True:
        result = holds()
        if await result if inspect.isawaitable(result) else result:
            return True
        if time.monotonic() > end:
            return False
        await asyncio.sleep(LOOK_SECONDS)


async def next_millisecond() -> None:
    """Return when new ids follow those that there are: ids of one millisecond have no order."""
    made_in = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 == made_in:
        await asyncio.sleep(0)
