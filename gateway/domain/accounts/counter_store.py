"""Where counts of clients are kept: a number for each holder, and a time that belongs to it."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

HOLDERS = 50_000
"""The number of stored holders; the one idle longest is dropped first, when it is full again."""


class CounterStore(Protocol):
    """The number and the time of each holder."""

    def get(self, holder: str) -> tuple[float, float] | None:
        """Return number and time, None for a holder without them."""

    def put(self, holder: str, level: float, then: float) -> None:
        """Store number and time."""


NewCounterStore = Callable[[str], CounterStore]
"""Returns the levels of a name; the processes of a node share them."""


class OwnCounters:
    """Levels in this process alone."""

    def __init__(self, name: str = "") -> None:
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self.get = self._levels.get

    def put(self, holder: str, level: float, then: float) -> None:
        self._levels[holder] = (level, then)
        self._levels.move_to_end(holder)
        if len(self._levels) > HOLDERS:
            self._levels.popitem(last=False)
