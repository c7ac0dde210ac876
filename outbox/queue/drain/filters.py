"""Judge the events of one fan-out by the conditions of the webhooks that subscribe to them.

Only webhooks with conditions cost anything here. What they leave out makes no delivery.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol, TypeVar

from outbox.database.transaction import Row, Tx
from outbox.webhooks.conditions import Condition, data_of, hold

BODY = "select body from events where id = $1"


class Subscriber(Protocol):
    """A webhook of the round; its conditions are None when they are damaged."""

    @property
    def id(self) -> str: ...
    @property
    def conditions(self) -> Sequence[Condition] | None: ...


S = TypeVar("S", bound=Subscriber)


class Filters:
    """The conditions of one round, and what they left out: webhook id and event name."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self.left_out: list[tuple[str, str]] = []

    async def passing(self, event: Row, chosen: list[S]) -> list[S]:
        """Return those of the webhooks whose conditions hold for the event.

        A test event goes to its webhook whatever its conditions are.
        """
        if event["webhook_id"] is not None or not any(to.conditions for to in chosen):
            return chosen
        body = event["body"]
        if body is None:
            row = await self._tx.one(BODY, event["id"])
            body = None if row is None else row["body"]
        data = data_of(body)
        passed: list[S] = []
        for to in chosen:
            if not to.conditions or hold(to.conditions, data):
                passed.append(to)
            else:
                self.left_out.append((to.id, event["name"]))
        return passed

    def by_event(self) -> Counter[str]:
        """Return how many deliveries were left out, by the name of the event."""
        return Counter(name for _, name in self.left_out)

    def by_webhook(self) -> Counter[str]:
        """Return how many deliveries were left out, by webhook."""
        return Counter(webhook_id for webhook_id, _ in self.left_out)
