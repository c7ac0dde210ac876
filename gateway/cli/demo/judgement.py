"""Asks the gateway what became of deliveries that have not arrived, or that arrived again.

Who explores the console may pause a webhook, activate it without what was parked, delete it, or
send events again: none of this is a loss or a fault.
"""

from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.cli.demo.demo_goods import Owner
from gateway.cli.demo.receiver import Inbox
from gateway.cli.demo.table import Missing

LISTED = ("waiting", "in_flight", "held", "cancelled")
UNFINISHED = frozenset({"ready", "scheduled", "in_flight", "held"})
KEPT_BACK = frozenset({"parked", "cancelled"})
"""States that the owner decides: at a paused webhook, or of what it was activated without."""


@dataclass
class Judgement:
    """Deliveries that have not arrived, by what the gateway says of them."""

    waiting: list[Missing] = field(default_factory=list)
    kept_back: list[Missing] = field(default_factory=list)
    lost: list[Missing] = field(default_factory=list)
    """No delivery of the event is left that could arrive."""


class Judge:
    """Judges by the REST API. Its functions raise DemoFault when the gateway does not answer."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._ids: dict[str, str] = {}
        """The webhooks of inboxes, also those that are deleted meanwhile."""

    async def listed(self) -> Collection[str]:
        """Return the inboxes that have a webhook."""
        listed = await self._owner.call("GET", "/api/webhooks")
        ids = {one["url"].rpartition("/")[2]: one["id"] for one in listed["data"]}
        self._ids |= ids
        return ids

    async def judge(self, missing: Sequence[Missing]) -> Judgement:
        """Judge deliveries that have not arrived."""
        judgement = Judgement()
        listed = await self.listed()
        for name in dict.fromkeys(delivery[0] for delivery in missing):
            if name not in listed:
                judgement.kept_back += [delivery for delivery in missing if delivery[0] == name]
                continue
            states = await self._states(name)
            for delivery in missing:
                if delivery[0] != name:
                    continue
                its = states.get((delivery[1], delivery[2]), set())
                if its & UNFINISHED:
                    judgement.waiting.append(delivery)
                elif its & KEPT_BACK:
                    judgement.kept_back.append(delivery)
                else:
                    judgement.lost.append(delivery)
        return judgement

    async def sent_again(self, inboxes: Iterable[Inbox]) -> Mapping[tuple[str, str], int]:
        """Return how often the owner has sent an event again: (inbox, event id) → replays."""
        replays: Counter[tuple[str, str]] = Counter()
        for inbox in inboxes:
            if all(times == 1 for times in inbox.accepted.values()):
                continue
            async for delivery in self._deliveries(inbox.name):
                if delivery["origin"] == "replay":
                    replays[inbox.name, delivery["eventId"]] += 1
        return replays

    async def _states(self, name: str) -> Mapping[tuple[str, str], set[str]]:
        """Return the states of unfinished and cancelled deliveries: (event, record) → states."""
        states: dict[tuple[str, str], set[str]] = {}
        for state in LISTED:
            async for delivery in self._deliveries(name, f"&state={state}"):
                key = delivery.get("event", ""), delivery["recordId"]
                states.setdefault(key, set()).add(delivery["state"])
        return states

    async def _deliveries(self, name: str, query: str = "") -> AsyncIterator[Mapping[str, Any]]:
        path = f"/api/deliveries?webhookId={self._ids[name]}{query}"
        after, more = "", True
        while more:
            page = await self._owner.call("GET", path + after)
            for delivery in page["data"]:
                yield delivery
            more = page["hasMore"]
            after = f"&after={page['nextCursor']}" if more else ""
