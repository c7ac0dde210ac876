"""Sends in flight, and the slow ones among them: by owner, the oldest first."""

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Sending:
    """One send in flight. `size` is the size of its body, in bytes."""

    webhook_id: str
    owner_id: str
    size: int
    failing: bool
    started: float
    limited: bool = False
    """Whether its webhook fails or responds slowly, and so gets one request at a time."""
    open_since: float = 0.0
    """When its webhook's window was last full, in monotonic seconds."""
    slow: bool = False
    silent: bool = False
    """Whether it became slow while its webhook had not answered since it was slow first."""
    cut: bool = False
    done: bool = False
    objection: str | None = None
    """Why its request must no longer be sent."""


class SlowSends:
    """The open slow sends, by owner, the oldest first."""

    def __init__(self) -> None:
        self.count = 0
        self.bytes = 0
        self._owners: dict[str, dict[Sending, None]] = {}

    def add(self, sending: Sending) -> None:
        self._owners.setdefault(sending.owner_id, {})[sending] = None
        self.count += 1
        self.bytes += sending.size

    def remove(self, sending: Sending) -> None:
        own = self._owners[sending.owner_id]
        del own[sending]
        if not own:
            del self._owners[sending.owner_id]
        self.count -= 1
        self.bytes -= sending.size

    def of(self, owner_id: str) -> int:
        return len(self._owners.get(owner_id, ()))

    def oldest(self, owner_id: str) -> Sending:
        return next(iter(self._owners[owner_id]))

    def holds_most(self) -> str:
        return max(self._owners, key=lambda owner_id: len(self._owners[owner_id]))

    def holds_most_bytes(self) -> str:
        return max(self._owners, key=lambda owner_id: sum(s.size for s in self._owners[owner_id]))
