"""Where time comes from. Everything else is handed a Clock."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Three readings of time, for three different questions."""

    def wall(self) -> int:
        """Microseconds since the Unix epoch, UTC: what people and receivers see. May jump."""

    def boot(self) -> int:
        """Microseconds since boot, sleep included: how much time really went by. Never jumps."""

    def monotonic(self) -> float:
        """Seconds for waits and timings inside this process."""


class SystemClock:
    """The machine's own clocks."""

    def wall(self) -> int:
        return time.time_ns() // 1000

    def boot(self) -> int:
        # CLOCK_BOOTTIME counts while the machine sleeps; elsewhere monotonic is the nearest.
        source = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        return time.clock_gettime_ns(source) // 1000

    def monotonic(self) -> float:
        return time.monotonic()


async def sleep_until_set(event: asyncio.Event, seconds: float) -> bool:
    """Wait for `event`, at most `seconds`; True when it was set."""
    if event.is_set():
        return True
    try:
        async with asyncio.timeout(max(seconds, 0.0)):
            await event.wait()
    except TimeoutError:
        return False
    return True
