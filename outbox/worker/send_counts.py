"""What one worker counts: sends in flight, slow ones among them, windows, and turns of owners."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from outbox.queue.state.fair_shares import Owner, Rank, Search, Shares

QUICK_FOR_SECONDS = 60.0
"""A webhook counts as quick for this long after its last quick success."""
REMEMBERED_OWNERS = 20_000
FURTHER_SHARE = 8
"""This fraction (1/n) of the slots comes on top of them, for owners with few sends."""


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


@dataclass(slots=True)
class Window:
    """The sends in flight to one webhook, and their limit. Times are in monotonic seconds."""

    owner_id: str
    width: int
    steep_below: int
    """Below this width each success widens it by one, else as many as it is wide."""
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


class FreeSends(Mapping[str, int]):
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


class Owners(Mapping[str, Owner]):
    """Counts sends in slots, and the turns, of each owner, in the memory of one worker."""

    def __init__(self) -> None:
        self._owners: dict[str, Owner] = {}
        self._turns = 0
        self._search = Search()

    def start(self, owner_id: str) -> None:
        """Count a send that starts: it uses a slot, and it is a turn of its owner."""
        owner = self._owners.get(owner_id)
        if owner is None:
            if len(self._owners) >= REMEMBERED_OWNERS:
                # Owners without a send in a slot are forgotten; their turns start again.
                self._owners = {one: each for one, each in self._owners.items() if each.held}
            owner = self._owners[owner_id] = Owner()
        self._turns += 1
        owner.turn = self._turns
        owner.served += 1
        owner.held += 1

    def release(self, owner_id: str) -> None:
        """Count a send that gave its slot back."""
        self._owners[owner_id].held -= 1

    def shares(self, slots: int, rest: int, rank: Callable[[str], Rank]) -> Shares:
        """Return what a claim needs; `rest` of the slots are free, or so many more are in use."""
        further = max(slots // FURTHER_SHARE + min(rest, 0), 0)
        return Shares(further, self, rank=rank, search=self._search)

    def __getitem__(self, owner_id: str) -> Owner:
        return self._owners[owner_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._owners)

    def __len__(self) -> int:
        return len(self._owners)
