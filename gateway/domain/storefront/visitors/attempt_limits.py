"""Limits how often something may be tried in a period, by who tries it.

A try counts before its check, so that parallel tries all count, also those of one GraphQL document.
"""

import hashlib

from gateway.domain.accounts.counter_store import NewCounterStore, OwnCounters
from gateway.domain.accounts.networks import networks_of
from gateway.records.errors import rate_limited
from outbox.clock import Clock

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
