"""Find the webhooks that are behind: first attempts are a minute late, and no circuit is open.

Deliveries that wait for an open circuit, a paused webhook or a later retry are no backlog. Replays
are one, because new events wait behind them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import islice

BEHIND_SECONDS = 60.0
MOST_LISTED = 20
"""Webhooks and owners that a reading names: those with the oldest deliveries."""
EACH_OWNER = 3
"""Webhooks of one owner that a reading names, so that each reading names several owners."""
MOST_COMPARED = 3_000
"""Webhooks that a reading compares, on the event loop in 8 ms at most; more are not compared."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """First attempts that are due: how many, and for how many seconds the oldest has been due."""

    owner_id: str
    deliveries: int
    age: float


@dataclass(slots=True)
class Backlogs:
    """The backlog of an installation, of the listed webhooks and of the listed owners, by id.

    `largest` are the deliveries of the one webhook that has most, `rest` those of all others.
    """

    behind: int = 0
    largest: int = 0
    rest: int = 0
    webhooks: dict[str, Backlog] = field(default_factory=dict)
    owners: dict[str, Backlog] = field(default_factory=dict)


class Behind:
    """The webhooks that are behind, kept up to date one by one."""

    def __init__(self) -> None:
        self._webhooks: dict[str, Backlog] = {}
        self._deliveries = 0

    def put(self, webhook_id: str, backlog: Backlog) -> None:
        """Set what waits at a webhook."""
        self.drop(webhook_id)
        if backlog.age >= BEHIND_SECONDS:
            self._webhooks[webhook_id] = backlog
            self._deliveries += backlog.deliveries

    def drop(self, webhook_id: str) -> None:
        """Remove a webhook without waiting deliveries."""
        before = self._webhooks.pop(webhook_id, None)
        if before is not None:
            self._deliveries -= before.deliveries

    def backlogs(self) -> Backlogs:
        """Return the backlog of the installation."""
        compared = dict(islice(self._webhooks.items(), MOST_COMPARED))
        by_owner: dict[str, list[str]] = defaultdict(list)
        for webhook_id, backlog in compared.items():
            by_owner[backlog.owner_id].append(webhook_id)
        largest = max((backlog.deliveries for backlog in compared.values()), default=0)
        owners = {
            owner: _sum(owner, [compared[w] for w in webhooks])
            for owner, webhooks in by_owner.items()
        }
        named = (
            w for webhooks in by_owner.values() for w in _oldest(EACH_OWNER, webhooks, compared)
        )
        return Backlogs(
            len(self._webhooks),
            largest,
            self._deliveries - largest,
            {w: compared[w] for w in _oldest(MOST_LISTED, named, compared)},
            {o: owners[o] for o in _oldest(MOST_LISTED, owners, owners)},
        )


def _oldest(count: int, ids: Iterable[str], backlogs: Mapping[str, Backlog]) -> list[str]:
    return nlargest(count, ids, key=lambda one: backlogs[one].age)


def _sum(owner_id: str, backlogs: list[Backlog]) -> Backlog:
    deliveries = sum(backlog.deliveries for backlog in backlogs)
    return Backlog(owner_id, deliveries, max(backlog.age for backlog in backlogs))
