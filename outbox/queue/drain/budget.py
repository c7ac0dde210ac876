"""Bound the work of one round of fan-out by prices of its parts.

A round counts what it does: webhooks read, events compared with webhooks, conditions judged, bytes
parsed, deliveries made. Each kind has a price, about the nanoseconds that it takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from outbox.webhooks.conditions import Condition

ROUND = {"sqlite": 6_000_000, "postgres": 24_000_000}
"""What one round may spend. On SQLite nothing else runs on the event loop meanwhile.

On PostgreSQL the loop is free during each of its statements.
"""
EVENT = 10_000
WEBHOOK = 12_000
COMPARISON = 250
CONDITION = 400
KIBIBYTE = 2_000
DELIVERY = 20_000
CLAIM = 40_000
SETTLE = 50_000
"""The prices of a claim and of a recorded result in the same unit."""

WEBHOOKS_OF_ALL = {"sqlite": 150, "postgres": 1_000}
"""Webhooks that one round reads for new events; with more of them, owners take turns."""
LEAST_WEBHOOKS = 50
"""Webhooks of an owner that one turn reads at least; with more, it splits an event."""


class Conditional(Protocol):
    """A webhook; its conditions are None when they are damaged."""

    @property
    def conditions(self) -> Sequence[Condition] | None: ...


class Budget:
    """What a round, or a part of it, may still spend."""

    def __init__(self, amount: int) -> None:
        self.left = amount
        self._begun = False

    def spend(self, price: int) -> None:
        """Take the price of work that is done even beyond the budget."""
        self.left -= price

    def webhooks(self) -> int:
        """Return how many webhooks of an owner to read, for which one event can then be done."""
        return max(self.left // (WEBHOOK + DELIVERY), LEAST_WEBHOOKS)

    def events(self, webhooks: int, most: int) -> int:
        """Return how many events to read for so many webhooks: some of them may cost little."""
        return min(max(4 * self.left // (EVENT + DELIVERY * max(webhooks, 1)), 8), most)

    def begin(self, compared: int, chosen: Iterable[Conditional], size: int) -> bool:
        """Take the price of one event with a body of `size` bytes; return False if it is too high.

        The first event has no limit: the number of its webhooks is bounded, and so is its body.
        """
        self.left -= COMPARISON * compared
        price, judged = 0, False
        for to in chosen:
            price += DELIVERY
            if to.conditions:
                judged = True
                price += CONDITION * len(to.conditions)
        if judged:
            price += KIBIBYTE * (size // 1024)
        if self._begun and price > self.left:
            return False
        self._begun = True
        self.left -= price
        return True
