"""Waits in tests: `until` a condition holds, or a hang is sure."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")
HANG_SECONDS = 120.0
"""Only what hangs takes so long, also on a busy machine: the limit of whatever a test waits for."""
LOOK_SECONDS = 0.01


@overload
async def until(look: Callable[[], Awaitable[T]], seconds: float = ..., rest: float = ...) -> T: ...
@overload
async def until(look: Callable[[], T], seconds: float = ..., rest: float = ...) -> T: ...
async def until(
    look: Callable[[], Any], seconds: float = HANG_SECONDS, rest: float = LOOK_SECONDS
) -> Any:
    """Return the result of `look`, awaited if need be, once it is true. Raise TimeoutError.

    `rest` seconds are between two looks.
    """
    async with asyncio.timeout(seconds):
        while not (result := await _seen(look)):
            await asyncio.sleep(rest)
        return result


async def in_time(look: Callable[[], Any], seconds: float = HANG_SECONDS) -> bool:
    """Wait until `look` returns true; return whether it did in time."""
    try:
        await until(look, seconds)
    except TimeoutError:
        return False
    return True


def wait_until(
    holds: Callable[[], bool], told: Callable[[], object] = str, seconds: float = HANG_SECONDS
) -> None:
    """Return when `holds` returns true, outside an event loop; a failure shows what is `told`."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, told()
        time.sleep(LOOK_SECONDS)


async def _seen(look: Callable[[], Any]) -> Any:
    result = look()
    return await result if inspect.isawaitable(result) else result


async def next_millisecond() -> None:
    """Return when new ids follow those that there are: ids of one millisecond have no order."""
    made_in = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 == made_in:
        await asyncio.sleep(0)
