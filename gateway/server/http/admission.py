"""Limits what clients can occupy, in total and for each: connections and memory.

Some connections are reserved for probes.
"""

from collections import Counter, OrderedDict
from typing import Protocol

PROBES = 64
"""Connections beyond the limits, which accept only probes."""
SHORTEST_SECONDS = 1.0
"""The longest idle time of a connection when all places are taken."""


class Guest(Protocol):
    """A connection that has a place."""

    @property
    def waited_since(self) -> float | None:
        """The time since which the server waits for this client; None while the server works."""

    def evict(self) -> None:
        """Close the connection to free its place."""


class Admission:
    """The places for connections; a full server closes those of clients that let it wait."""

    def __init__(self, most: int, per_address: int) -> None:
        self._most = most
        self._per_address = per_address
        self._held: dict[str, dict[Guest, None]] = {}
        self._probes: OrderedDict[Guest, None] = OrderedDict()
        self._open = 0

    def admit(self, guest: Guest, address: str) -> bool:
        """Give the connection a place; return False when the place is only for probes.

        When all places are taken, the address with the most connections loses the one whose
        client has let the server wait the longest.
        """
        if len(self._held.get(address, ())) < self._per_address and (
            self._open < self._most or self._make_room()
        ):
            self._held.setdefault(address, {})[guest] = None
            self._open += 1
            return True
        if self._probes and len(self._probes) >= PROBES:
            oldest = next(iter(self._probes))
            del self._probes[oldest]
            oldest.evict()
        self._probes[guest] = None
        return False

    def release(self, guest: Guest, address: str) -> None:
        """Free the place of a closed connection."""
        if guest in self._probes:
            del self._probes[guest]
            return
        held = self._held.get(address, {})
        if guest in held:
            del held[guest]
            self._open -= 1
            if not held:
                del self._held[address]

    def idle_seconds(self, longest: float) -> float:
        """Return the current idle time: shorter when more than half of the places are taken."""
        free = 1 - self._open / self._most
        return longest if free >= 0.5 else max(longest * free * 2, SHORTEST_SECONDS)

    def _make_room(self) -> bool:
        for address in sorted(self._held, key=lambda a: len(self._held[a]), reverse=True):
            waiting = [
                (since, number, guest)
                for number, guest in enumerate(self._held[address])
                if (since := guest.waited_since) is not None
            ]
            if waiting:
                _, _, guest = min(waiting)
                self.release(guest, address)
                guest.evict()
                return True
        return False


class Budget:
    """Bytes in use: at most `total` for all holders together and `share` for each."""

    def __init__(self, total: int, share: int) -> None:
        self.total = total
        self.share = share
        self.held = 0
        self._shares: Counter[str] = Counter()

    def take(self, holder: str, size: int, *, must: bool = False) -> bool:
        """Take `size` bytes if they are free; return whether they were. `must` always takes."""
        if not must and (self.held + size > self.total or self._shares[holder] + size > self.share):
            return False
        self.held += size
        self._shares[holder] += size
        return True

    def give(self, holder: str, size: int) -> None:
        """Give back `size` bytes."""
        self.held -= size
        self._shares[holder] -= size
        if self._shares[holder] <= 0:
            del self._shares[holder]

    def spent(self, holder: str) -> bool:
        """Return whether `holder` has no bytes left."""
        return self.held >= self.total or self._shares.get(holder, 0) >= self.share
