"""Who may hold a connection: so many in all, so many of one address, and some for probes alone."""

from collections import OrderedDict
from typing import Protocol

PROBES = 64
"""Connections past the limits, which may ask for a probe and nothing else."""
SHORTEST_SECONDS = 1.0
"""How long a connection may be idle when no place is left."""


class Guest(Protocol):
    """A connection, as far as its place is concerned."""

    @property
    def waited_since(self) -> float | None:
        """Since when the server has been waiting for this client; None while it is at work."""

    def evict(self) -> None:
        """Close it, so that somebody else gets its place."""


class Admission:
    """Hands out places, and takes back those of clients who let the server wait."""

    def __init__(self, most: int, per_address: int) -> None:
        self._most = most
        self._per_address = per_address
        self._held: dict[str, dict[Guest, None]] = {}
        self._probes: OrderedDict[Guest, None] = OrderedDict()
        self._open = 0

    def admit(self, guest: Guest, address: str) -> bool:
        """Give a place; False when it is one for probes alone.

        When all are taken, the client of the address that holds most which has let the server
        wait the longest loses its place.
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
        """A connection has ended."""
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
        """How long a connection may be idle now: less as more than half of the places are taken."""
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
