"""Stores a number and a time for each client, in this process or shared by those of a node."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

HOLDERS = 50_000
"""Maximum number of stored holders; the least recently used is dropped first."""


class CounterStore(Protocol):
    """The number and the time of each holder."""

    def get(self, holder: str) -> tuple[float, float] | None:
        """Return number and time, None for a holder without them."""

    def put(self, holder: str, level: float, then: float) -> None:
        """Store number and time."""


NewCounterStore = Callable[[str], CounterStore]
"""Returns the store of a name, which the processes of a node may share."""


class OwnCounters:
    """A store in the memory of this process."""

    def __init__(self, name: str = "") -> None:
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self.get = self._levels.get

    def put(self, holder: str, level: float, then: float) -> None:
        self._levels[holder] = (level, then)
        self._levels.move_to_end(holder)
        if len(self._levels) > HOLDERS:
            self._levels.popitem(last=False)
