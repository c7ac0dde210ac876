"""Find the webhooks that are behind: first attempts are a minute late, and no circuit is open.

Deliveries that wait for an open circuit, a paused webhook or a later retry are no backlog. Replays
are one, because new events wait behind them. The installation is late only with what it could have
sent: a lane may wait for the rate of its owner, or because its receiver asked for it (Retry-After).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import islice

BEHIND_SECONDS = 60.0
LONG_BEHIND_SECONDS = 600.0
MOST_LISTED = 20
"""Webhooks and owners that a reading names: those with the oldest deliveries."""
EACH_OWNER = 3
"""Webhooks of one owner that a reading names, so that each reading names several owners."""
MOST_COMPARED = 3_000
"""Webhooks that a reading compares, on the event loop in 8 ms at most; more are not compared."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """First attempts that are due: how many, and for how many seconds the oldest has been due.

    `late` are the seconds of these in which the installation could have sent it.
    """

    owner_id: str
    deliveries: int
    age: float
    late: float


@dataclass(slots=True)
class Backlogs:
    """The backlog of an installation, of the listed webhooks and of the listed owners, by id.

    `late` are the webhooks with which the installation is late, by a minute or more; `late_owners`
    are theirs, and `long_late_owners` those of webhooks with which it is late by ten minutes or
    more. `largest` are the deliveries due at late webhooks of the owner who has most, `rest` those
    of all others.
    """

    late: int = 0
    late_owners: int = 0
    long_late_owners: int = 0
    largest: int = 0
    rest: int = 0
    webhooks: dict[str, Backlog] = field(default_factory=dict)
    owners: dict[str, Backlog] = field(default_factory=dict)


class Behind:
    """The webhooks that are behind, kept up to date one by one."""

    def __init__(self) -> None:
        self._webhooks: dict[str, Backlog] = {}
        self._late: dict[str, Backlog] = {}
        """Those of them with which the installation is late."""
        self._deliveries = 0
        """The deliveries of the late ones."""

    def put(self, webhook_id: str, backlog: Backlog) -> None:
        """Set what waits at a webhook."""
        self.drop(webhook_id)
        if backlog.age >= BEHIND_SECONDS:
            self._webhooks[webhook_id] = backlog
        if backlog.late >= BEHIND_SECONDS:
            self._late[webhook_id] = backlog
            self._deliveries += backlog.deliveries

    def drop(self, webhook_id: str) -> None:
        """Remove a webhook without waiting deliveries."""
        self._webhooks.pop(webhook_id, None)
        before = self._late.pop(webhook_id, None)
        if before is not None:
            self._deliveries -= before.deliveries

    def backlogs(self) -> Backlogs:
        """Return the backlog of the installation."""
        compared = dict(islice(self._webhooks.items(), MOST_COMPARED))
        by_owner: dict[str, list[str]] = defaultdict(list)
        for webhook_id, backlog in compared.items():
            by_owner[backlog.owner_id].append(webhook_id)
        owners = {
            owner: _sum(owner, [compared[w] for w in webhooks])
            for owner, webhooks in by_owner.items()
        }
        named = (
            w for webhooks in by_owner.values() for w in _oldest(EACH_OWNER, webhooks, compared)
        )
        late = list(islice(self._late.values(), MOST_COMPARED))
        deliveries: Counter[str] = Counter()
        for backlog in late:
            deliveries[backlog.owner_id] += backlog.deliveries
        largest = max(deliveries.values(), default=0)
        return Backlogs(
            late=len(self._late),
            late_owners=len(deliveries),
            long_late_owners=len({one.owner_id for one in late if one.late >= LONG_BEHIND_SECONDS}),
            largest=largest,
            rest=self._deliveries - largest,
            webhooks={w: compared[w] for w in _oldest(MOST_LISTED, named, compared)},
            owners={o: owners[o] for o in _oldest(MOST_LISTED, owners, owners)},
        )


def _oldest(count: int, ids: Iterable[str], backlogs: Mapping[str, Backlog]) -> list[str]:
    return nlargest(count, ids, key=lambda one: backlogs[one].age)


def _sum(owner_id: str, backlogs: list[Backlog]) -> Backlog:
    return Backlog(
        owner_id,
        sum(backlog.deliveries for backlog in backlogs),
        max(backlog.age for backlog in backlogs),
        max(backlog.late for backlog in backlogs),
    )
