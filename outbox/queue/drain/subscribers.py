"""Read the webhooks that fan-out compares with events, and apply their conditions.

It reads a bounded number of webhooks, only those that it needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import structlog

from outbox.database.sql import IDS, items
from outbox.database.transaction import Row, Tx
from outbox.queue.drain.loading import ENDPOINT
from outbox.queue.state import creation_snapshots, sequences
from outbox.queue.state.creation_snapshots import Snapshot
from outbox.webhooks import conditions, subscription
from outbox.webhooks.conditions import Condition, hold, stored_facts

# `idle`: fan-out claims nothing for a lane with due deliveries, because they come first, nor for a
# lane with limits, which a claim keeps under the lane's lock. Without the
# offset, PostgreSQL may read all deliveries that wait, once for the statement: it underestimates
# them before its first analyze.
COLUMNS = f"""{ENDPOINT}, w.owner_id, w.events, w.conditions, w.ordered, w.since_snapshot,
  {sequences.LAST}, w.created_at, /*sqlite w.since_pos*/ /*postgres 0*/ as since_pos,
  w.state = 'active' and l.failing = false and l.wait_until <= (select due_now())
    and l.concurrency is null and l.rate is null
    and not exists (select 1 from deliveries d where d.webhook_id = w.id and d.state = 'ready'
      and d.retry = false and d.next_at <= (select due_now()) /*postgres offset 0*/)
    and not exists (select 1 from deliveries d where d.webhook_id = w.id and d.state = 'ready'
      and d.retry = true and d.next_at <= (select due_now()) /*postgres offset 0*/) as idle
from webhooks w join lanes l on l.webhook_id = w.id"""
OF_OWNERS = f"select {COLUMNS} where w.owner_id in {IDS} limit $2"
OF_IDS = f"select {COLUMNS} where w.id in {IDS}"
# In the order of an index. A webhook that is created meanwhile is too young for the event.
PAGE = f"""
select {COLUMNS} where w.owner_id = $1 and (w.created_at, w.id) > ($2, $3)
order by w.created_at, w.id limit $4
"""
BODY = "select body from events where id = $1"
NONE: Mapping[str, int] = {}

log = structlog.get_logger("outbox")


@dataclass(slots=True)
class Subscriber:
    """A webhook during one round."""

    id: str
    row: Row
    names: frozenset[str] | None
    """None for a damaged list of events."""
    conditions: Sequence[Condition] | None
    """None for damaged conditions."""
    since: Snapshot | None
    """The snapshot of its creation on PostgreSQL, while it still matters."""
    deliveries: int = 0
    waiting: bool = False

    def wants(self, event: Row) -> bool:
        """Return whether the webhook gets the event: subscribed, and not older than the webhook.

        On PostgreSQL positions do not decide this, because the transaction with the first position
        may commit last. A webhook with a damaged list of events gets each event as a dead delivery.
        """
        if event["pos"] <= self.row["since_pos"]:
            return False
        if self.since is not None and (event["xid"] is None or self.since.sees(int(event["xid"]))):
            return False
        return self.names is None or event["name"] in self.names


async def of_owners(
    tx: Tx, owners: Collection[str], most: int
) -> tuple[dict[str, list[Subscriber]] | None, int]:
    """Return all webhooks of these owners, None for more than `most`, and how many were read."""
    rows = await tx.all(OF_OWNERS, items(sorted(owners)), most + 1) if owners else []
    if len(rows) > most:
        return None, len(rows)
    by_owner: dict[str, list[Subscriber]] = {}
    for row in rows:
        by_owner.setdefault(row["owner_id"], []).append(_subscriber(row))
    return by_owner, len(rows)


async def of_ids(tx: Tx, webhook_ids: Collection[str]) -> Mapping[str, Subscriber]:
    """Return the webhooks of these ids."""
    rows = await tx.all(OF_IDS, items(sorted(webhook_ids))) if webhook_ids else []
    return {row["id"]: _subscriber(row) for row in rows}


async def page(
    tx: Tx, owner_id: str, after: tuple[int, str], most: int
) -> tuple[list[Subscriber], bool]:
    """Return up to `most` webhooks of an owner behind a place, and whether others follow."""
    rows = await tx.all(PAGE, owner_id, *after, most + 1)
    return [_subscriber(row) for row in rows[:most]], len(rows) > most


def _subscriber(row: Row) -> Subscriber:
    names = _names(row["events"])
    if names is None:
        log.error("subscription_unreadable", webhook_id=row["id"])
    # Most webhooks have neither conditions nor, once they are some seconds old, a snapshot.
    criteria = () if row["conditions"] is None else conditions.of(row)
    text = row["since_snapshot"]
    since = None if text is None else creation_snapshots.parse(text)
    return Subscriber(row["id"], row, names, criteria, since)


@lru_cache(maxsize=1024)
def _names(events: str) -> frozenset[str] | None:
    """Return the events of a subscription, of which many webhooks have the same text."""
    names = subscription(events)
    return None if names is None else frozenset(names)


class Filters:
    """The conditions of one round, and what they left out: webhook id and event name."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self.left_out: list[tuple[str, str]] = []

    async def passing(self, event: Row, chosen: list[Subscriber]) -> list[Subscriber]:
        """Return those of the webhooks whose conditions hold for the event.

        A test event goes to its webhook whatever its conditions are.
        """
        if event["webhook_id"] is not None or not any(to.conditions for to in chosen):
            return chosen
        body = event["body"]
        if body is None:
            row = await self._tx.one(BODY, event["id"])
            body = None if row is None else row["body"]
        facts = stored_facts(event, body)
        passed: list[Subscriber] = []
        for to in chosen:
            if not to.conditions or hold(to.conditions, facts):
                passed.append(to)
            else:
                self.left_out.append((to.id, event["name"]))
        return passed

    def by_event(self) -> Mapping[str, int]:
        """Return how many deliveries were left out, by the name of the event."""
        if not self.left_out:
            return NONE
        return Counter(name for _, name in self.left_out)

    def by_webhook(self) -> Mapping[str, int]:
        """Return how many deliveries were left out, by webhook."""
        if not self.left_out:
            return NONE
        return Counter(webhook_id for webhook_id, _ in self.left_out)
