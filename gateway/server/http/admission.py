"""Limits the connections that clients can occupy, in total and for each.

Some connections are reserved for probes.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from heapq import nsmallest
from typing import Protocol

PROBES = 64
"""Connections beyond the limits, which accept only probes."""
SHORTEST_SECONDS = 1.0
"""The longest idle time of a connection when all places are taken."""
SLOW_SECONDS = 5.0
"""A body or response is slow when it lasts so much longer than that of a brisk client."""
LOOK_SECONDS = 1.0
SLOW_PART = 16
LEAST_SLOW = 8
"""One holder may have this part of all connections slow at a time, but at least so many."""
AHEAD = 16
"""The part of a holder's connections that is chosen to be closed at one look."""


class Guest(Protocol):
    """A connection that has a place."""

    @property
    def holder(self) -> str:
        """Who has it: an account or, while that is unknown, an address."""

    @property
    def waited_since(self) -> float | None:
        """The time since which the server waits for this client; None while the server works."""

    @property
    def slow_since(self) -> float | None:
        """The same for a client that sends a body or takes a response; else None."""

    def evict(self) -> None:
        """Close the connection to free its place."""


class Admission:
    """The places for connections; a full server closes those of clients that let it wait."""

    def __init__(self, most: int, per_address: int, now: Callable[[], float]) -> None:
        """`now` is the clock of the times that the guests have."""
        self._most = most
        self._per_address = per_address
        self._now = now
        self._held: dict[str, dict[Guest, None]] = {}
        self._probes: OrderedDict[Guest, None] = OrderedDict()
        self._open = 0
        self._looked_at = 0.0
        self._quick: set[str] = set()
        """Addresses with all their places and nothing slow, since then."""
        self._next: list[tuple[float, Guest]] = []
        """Guests to close next, the last one first, with the time since which they let us wait."""

    def admit(self, guest: Guest, address: str) -> bool:
        """Give the connection a place; return False when the place is only for probes.

        When all places are taken, the account or address with the most connections loses the one
        whose client has let the server wait the longest; an address with all its places loses a
        slow body or response.
        """
        if self._has_room(address) and (self._open < self._most or self._make_room()):
            self._held.setdefault(address, {})[guest] = None
            self._open += 1
            return True
        if self._probes and len(self._probes) >= PROBES:
            oldest = next(iter(self._probes))
            del self._probes[oldest]
            oldest.evict()
        self._probes[guest] = None
        return False

    def make_room_for_bytes(self, guest: Guest) -> None:
        """Close a slow body or response of the holder with the most of them, but not `guest`."""
        self._give_way([one for held in self._held.values() for one in held if one is not guest])

    def too_many_slow(self) -> Sequence[Guest]:
        """Return the slowest bodies and responses that a holder has beyond its share."""
        most = max(LEAST_SLOW, self._most // SLOW_PART)
        slow = self._slow(guest for held in self._held.values() for guest in held)
        return [
            guest
            for some in slow.values()
            if len(some) > most
            for _, _, guest in sorted(some)[: len(some) - most]
        ]

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
        while self._next:
            since, guest = self._next.pop()
            # Whoever has been busy meanwhile does not wait so long any more.
            if guest.waited_since == since and self._close(guest):
                return True
        waiting: dict[str, list[tuple[float, int, Guest]]] = {}
        counts: Counter[str] = Counter()
        for number, guest in enumerate(one for held in self._held.values() for one in held):
            holder, waited = guest.holder, guest.waited_since
            counts[holder] += 1
            if waited is not None:
                waiting.setdefault(holder, []).append((waited, number, guest))
        if not waiting:
            return False
        most = max(waiting, key=lambda holder: counts[holder])
        _, _, guest = first = min(waiting[most])
        if ahead := counts[most] // AHEAD:
            # To look at all connections for each newcomer would be much work in a flood.
            some = nsmallest(ahead, waiting[most])
            self._next = [(since, one) for since, _, one in reversed(some) if one is not first[2]]
        return self._close(guest)

    def _has_room(self, address: str) -> bool:
        """Return whether an address may have another place; a slow body of it gives way.

        Where one address may have all places, as that of a proxy, only the holders count.
        """
        held = self._held.get(address, ())
        if len(held) < self._per_address or self._per_address >= self._most:
            return True
        now = self._now()
        if now - self._looked_at > LOOK_SECONDS:
            self._looked_at = now
            self._quick.clear()
        if address in self._quick:
            return False
        closed = self._give_way(held)
        if not closed:
            self._quick.add(address)
        return closed

    def _give_way(self, guests: Iterable[Guest]) -> bool:
        """Close the slowest of the holder with the most slow bodies and responses."""
        slow = self._slow(guests)
        if not slow:
            return False
        most = max(slow, key=lambda holder: len(slow[holder]))
        _, _, guest = min(slow[most])
        return self._close(guest)

    def _slow(self, guests: Iterable[Guest]) -> dict[str, list[tuple[float, int, Guest]]]:
        """Return the slow ones by holder."""
        before = self._now() - SLOW_SECONDS
        slow: dict[str, list[tuple[float, int, Guest]]] = {}
        for number, guest in enumerate(guests):
            since = guest.slow_since
            if since is not None and since < before:
                slow.setdefault(guest.holder, []).append((since, number, guest))
        return slow

    def _close(self, guest: Guest) -> bool:
        for address, held in self._held.items():
            if guest in held:
                self.release(guest, address)
                guest.evict()
                return True
        return False
