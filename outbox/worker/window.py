"""One webhook's window, and a view of how much of each is left."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from outbox.queue.state.fair_shares import Rank

QUICK_FOR_SECONDS = 60.0
"""A webhook counts as quick for this long after its last quick success."""


@dataclass(slots=True)
class Window:
    """The sends in flight to one webhook, and their limit. Times are in monotonic seconds."""

    owner_id: str
    width: int
    streak: int = 0
    in_flight: int = 0
    slow: int = 0
    slow_until: float = 0.0
    """Until when the webhook counts as slow; 0 for a quick one."""
    answering: bool = False
    """Whether the last attempt of a slow webhook succeeded."""
    full_at: float = 0.0
    """When it was last seen full."""
    open_since: float = 0.0
    """When a send ended that the next ones may have waited for."""
    quick_until: float = 0.0
    """Until when it counts as quick."""
    size: int = 0
    """Bytes of the last body."""
    needed: int = 0
    used: int = 0
    """Places beyond the first, as counted."""

    def rank(self, now: float) -> Rank:
        """Return which places of its owner this webhook gets."""
        if self.slow:
            return Rank.SLOW
        return Rank.QUICK if now < self.quick_until else Rank.OTHER


class Rests(Mapping[str, int]):
    """How many sends each webhook may start, as a live view."""

    def __init__(self, windows: Mapping[str, Window], rest: Callable[[Window], int]) -> None:
        self._windows = windows
        self._rest = rest

    def __getitem__(self, webhook_id: str) -> int:
        return self._rest(self._windows[webhook_id])

    def __iter__(self) -> Iterator[str]:
        return iter(self._windows)

    def __len__(self) -> int:
        return len(self._windows)
