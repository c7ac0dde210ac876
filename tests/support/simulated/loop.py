"""An event loop and a clock in virtual time: a wait ends at once, and the time is later."""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Mapping
from typing import Any

START = 1_800_000_000_000_000
"""Wall time at the start of a run, in microseconds since the Unix epoch."""


class Stuck(Exception):
    """Every task waits, and no timer will ever end a wait."""


class VirtualTime:
    """The time since the start of a run, in microseconds; it is also the clock of the engine."""

    def __init__(self) -> None:
        self.passed = 0
        self.jump = 0
        """How far the wall clock is off."""

    def wall(self) -> int:
        return START + self.passed + self.jump

    def boot(self) -> int:
        return self.passed

    def monotonic(self) -> float:
        return self.passed / 1_000_000


class _Selector(selectors.BaseSelector):
    """Passes the time of a wait instead of waiting."""

    def __init__(self, time: VirtualTime) -> None:
        self._time = time
        self._real = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stuck
        self._time.passed += math.ceil(max(timeout, 0.0) * 1_000_000)
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop without input and output, in virtual time."""

    def __init__(self, time: VirtualTime) -> None:
        super().__init__(_Selector(time))
        self._virtual = time

    def time(self) -> float:
        return self._virtual.monotonic()
