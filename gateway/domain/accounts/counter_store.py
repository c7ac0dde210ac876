"""Stores a number and a time for each client, in this process or shared by those of a node.

An AttemptLimit bounds with them how often something may be tried in a period, by who tries it. A
try counts before its check, so that parallel tries all count, also those of one GraphQL document.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from gateway.domain.accounts.networks import networks_of
from gateway.records.errors import rate_limited
from outbox.clock import Clock

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


NEVER = float("-inf")


class AttemptLimit:
    """At most `most` tries of one holder in `seconds`, which begin with its first try."""

    def __init__(
        self,
        clock: Clock,
        most: int,
        seconds: float,
        message: str,
        keep: NewCounterStore = OwnCounters,
    ) -> None:
        self._clock = clock
        self._most = most
        self._seconds = seconds
        self._message = message
        self._counts = keep(f"tries {message}")

    def begin(self, address: str, *holder: str) -> None:
        """Count a try from an address and its networks. Raises rate_limited.

        The wider networks have more tries; see accounts.networks.networks_of.
        """
        now = self._clock.monotonic()
        counted = []
        # The narrowest network first, so that a refused try does not count for its neighbours.
        for network, worth in networks_of(address):
            key = _digest(network, *holder)
            count, since = self._counts.get(key) or (0, now)
            if now - since >= self._seconds:
                count, since = 0, now
            if count >= self._most * worth:
                raise rate_limited(self._message, since + self._seconds - now)
            counted.append((key, (count + 1, since)))
        for key, entry in counted:
            self._counts.put(key, *entry)

    def forgive(self, address: str, *holder: str) -> None:
        """Forget the tries of an address after a successful one."""
        for network, _ in networks_of(address)[:1]:
            self._counts.put(_digest(network, *holder), 0, NEVER)

    def undo(self, address: str, *holder: str) -> None:
        """Remove a try that was not checked."""
        for network, _ in networks_of(address):
            key = _digest(network, *holder)
            count, since = self._counts.get(key) or (0, 0.0)
            if count:
                self._counts.put(key, count - 1, since)


def _digest(*parts: str) -> str:
    """Return a key of fixed size."""
    text = "\0".join(parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
