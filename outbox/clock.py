"""Clocks: wall time, time since boot and monotonic time.

Code receives a Clock as an argument and reads no other source of time.
"""

import asyncio
import time
from time import clock_gettime_ns, time_ns
from typing import Protocol

BOOT: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""It counts while the machine sleeps; other systems fall back to monotonic time."""


class Clock(Protocol):
    """The three readings of time that the code uses."""

    def wall(self) -> int:
        """Return microseconds since the Unix epoch, UTC, for people and receivers. May jump."""

    def boot(self) -> int:
        """Return microseconds since boot, including sleep: elapsed time, which never jumps."""

    def monotonic(self) -> float:
        """Return seconds for waits and timings inside this process."""


class SystemClock:
    """The clocks of the machine."""

    def wall(self) -> int:
        return time_ns() // 1000

    def boot(self) -> int:
        return clock_gettime_ns(BOOT) // 1000

    # The function itself: it is read more often than anything else.
    monotonic = staticmethod(time.monotonic)


async def sleep_until_set(event: asyncio.Event, seconds: float) -> bool:
    """Wait for `event`, at most `seconds`; return whether it was set."""
    if event.is_set():
        return True
    try:
        async with asyncio.timeout(max(seconds, 0.0)):
            await event.wait()
    except TimeoutError:
        return False
    return True
