"""What is past its time goes: finished deliveries with their attempts, events, parked deliveries.

Ids begin with the time at which they were made, so what is old is a range of the primary key and
needs no index of its own. It is looked through on a scan connection, page by page; what is to go
is then deleted in units that are short enough for the writes beside them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from outbox.clock import Clock
from outbox.database import free_pages
from outbox.database.plans import by_index
from outbox.database.sql import IDS, items
from outbox.database.transaction import DUTIES, Database, Tx
from outbox.queue.lanes import due_now
from outbox.states import End

DAY = 86_400_000_000
PAGE = 500
UNIT_SECONDS = 0.01
"""After so long a unit begins no further chunk."""
CHUNKS = {"sqlite": 20, "postgres": 250}
MOST_REST = 0.5


class Ledger(Protocol):
    """Who is told of what went."""

    def purged(self, table: str, count: int) -> None:
        """So many rows of `table` were removed."""

    def swept(self, table: str) -> None:
        """Nothing of `table` is past its time any more."""

    def delivery_finished(self, webhook_id: str, end: End, latency: float | None) -> None:
        """A parked delivery ended."""


class Untold:
    """A Ledger that nobody reads."""

    def purged(self, table: str, count: int) -> None: ...
    def swept(self, table: str) -> None: ...
    def delivery_finished(self, webhook_id: str, end: End, latency: float | None) -> None: ...


@dataclass(frozen=True, slots=True)
class Past:
    """What lies before `at` (microseconds UTC) was made before the id `first_kept`."""

    at: int
    first_kept: str


# Parked is what waits at a webhook that is not active.
DELIVERIES = """
select d.id, d.webhook_id,
  case when d.finished_at < $3 then 'finished'
    when d.state in ('ready', 'held') and (
      select l.active from lanes l where l.webhook_id = d.webhook_id) = false then 'parked'
    else 'kept' end as fate
from deliveries d where d.id > $1 and d.id < $2 order by d.id limit $4
"""

# One look by each of the two partial indexes on the event. Not `exists`: of that PostgreSQL may
# make a table of all deliveries first.
UNFINISHED = " or ".join(
    f"""(
    select 1 from deliveries d where d.event_id = events.id and d.origin {sign} 'event'
      and d.state in ('ready', 'in_flight', 'held') limit 1) is not null"""
    for sign in ("=", "<>")
)

EVENTS = f"""
select id, case when seq is not null and occurred_at < $3 and not ({UNFINISHED})
  then 'finished' else 'kept' end as fate
from events where id > $1 and id < $2 order by id limit $4
"""

# Taken by id alone: a condition on the state could lead the planner to another index.
TAKE_DELIVERIES = f"""
select id, finished_at from deliveries where id in {IDS} /*postgres for update skip locked*/
"""
DELETE_ATTEMPTS = f"delete from attempts where delivery_id in {IDS}"
DELETE_DELIVERIES = f"delete from deliveries where id in {IDS}"

# A replay of an event holds its row while it makes a delivery of it.
TAKE_EVENTS = f"select id from events where id in {IDS} /*postgres for update skip locked*/"
DELETE_EVENTS = f"delete from events where id in {IDS} and not ({UNFINISHED})"

# Before the deliveries, as everywhere; with it nobody activates the webhook meanwhile.
WEBHOOKS = f"select distinct webhook_id from deliveries where id in {IDS}"
TAKE_LANES = f"""
select webhook_id from lanes where webhook_id in {IDS} and active = false
order by webhook_id /*postgres for update*/
"""
TAKE_PARKED = f"""
select id, webhook_id, state from deliveries where id in {IDS} /*postgres for update skip locked*/
"""
CANCEL = f"""
update deliveries set state = 'cancelled', reason = 'retention', finished_at = $2 where id in {IDS}
"""

EXPIRE_SECRETS = """
update webhooks set old_secret = null, old_secret_until = null where id in (
  select id from webhooks where old_secret_until <= $1 order by old_secret_until limit $2
  /*postgres for update skip locked*/)
"""


class Retention:
    """Removes what is older than so many days. Run one at a time; a run may be broken off."""

    def __init__(
        self, db: Database, *, deliveries_days: int, events_days: int, ledger: Ledger | None = None
    ) -> None:
        self._db = db
        self._deliveries = deliveries_days * DAY
        self._events = events_days * DAY
        self._ledger = ledger or Untold()

    async def run_once(self) -> None:
        """All of it, and the room that it made goes back to the disk."""
        await self.deliveries()
        await self.events()
        await free_pages.give_back(self._db)

    async def deliveries(self) -> None:
        """Purge finished deliveries with their attempts, and cancel those parked for too long."""
        past = await self._db.read(past_of, self._deliveries)
        after = ""
        while page := await self._db.scan(DUTIES, look_through, DELIVERIES, after, past):
            after = page[-1][0]
            await self._all(page, "parked", self._cancel)
            await self._all(page, "finished", self._purge_deliveries, past.at)
        self._ledger.swept("deliveries")
        self._ledger.swept("attempts")

    async def events(self) -> None:
        """Purge events, except those that are still to be delivered."""
        past = await self._db.read(past_of, self._events)
        after = ""
        while page := await self._db.scan(DUTIES, look_through, EVENTS, after, past):
            after = page[-1][0]
            await self._all(page, "finished", self._purge_events)
        self._ledger.swept("events")

    async def _all(
        self,
        page: Sequence[tuple[str, str]],
        fate: str,
        some: Callable[..., Awaitable[int]],
        *args: int,
    ) -> None:
        """Hand all ids of `fate` to `some`, which says how many it dealt with, and rest between."""
        ids = [row_id for row_id, found in page if found == fate]
        while ids:
            began = self._db.clock.monotonic()
            ids = ids[await some(ids, *args) :]
            # Half of the time is left to others.
            await asyncio.sleep(min(self._db.clock.monotonic() - began, MOST_REST))

    async def _purge_deliveries(self, ids: Sequence[str], before: int) -> int:
        done, deliveries, attempts = await self._db.write(
            purge_deliveries, ids, before, self._db.clock
        )
        self._ledger.purged("deliveries", deliveries)
        self._ledger.purged("attempts", attempts)
        return done

    async def _purge_events(self, ids: Sequence[str]) -> int:
        done, count = await self._db.write(purge_events, ids, self._db.clock)
        self._ledger.purged("events", count)
        return done

    async def _cancel(self, ids: Sequence[str]) -> int:
        done, cancelled = await self._db.write(expire_parked, ids, self._db.clock)
        for webhook_id in cancelled.elements():
            self._ledger.delivery_finished(webhook_id, "cancelled", None)
        return done


async def past_of(tx: Tx, kept: int) -> Past:
    """What is older than `kept` microseconds.

    By both clocks: a wall clock that is a month ahead must not empty the log. On PostgreSQL the
    due clock is the server's.
    """
    at = min(tx.now, await due_now(tx)) - kept
    return Past(at, f"{max(at, 0) // 1000:012x}")


async def look_through(tx: Tx, statement: str, after: str, past: Past) -> list[tuple[str, str]]:
    """The next PAGE ids after `after` that are old, each with its fate."""
    await by_index(tx)
    rows = await tx.all(statement, after, past.first_kept, past.at, PAGE)
    return [(row["id"], row["fate"]) for row in rows]


async def purge_deliveries(
    tx: Tx, ids: Sequence[str], before: int, clock: Clock
) -> tuple[int, int, int]:
    """Remove those of `ids` that finished before `before`, with their attempts.

    How many of `ids` were dealt with until the time was up, and deliveries and attempts removed.
    """
    deliveries = attempts = done = 0
    await by_index(tx)
    began = clock.monotonic()
    while done < len(ids) and (not done or clock.monotonic() - began < UNIT_SECONDS):
        chunk = ids[done : done + CHUNKS[tx.engine]]
        done += len(chunk)
        rows = await tx.all(TAKE_DELIVERIES, items(chunk))
        going = [
            r["id"] for r in rows if r["finished_at"] is not None and r["finished_at"] < before
        ]
        if going:
            attempts += await tx.run(DELETE_ATTEMPTS, items(going))
            deliveries += await tx.run(DELETE_DELIVERIES, items(going))
    return done, deliveries, attempts


async def purge_events(tx: Tx, ids: Sequence[str], clock: Clock) -> tuple[int, int]:
    """Remove those of `ids` that have nothing unfinished.

    How many of `ids` were dealt with until the time was up, and events removed.
    """
    count = done = 0
    await by_index(tx)
    began = clock.monotonic()
    while done < len(ids) and (not done or clock.monotonic() - began < UNIT_SECONDS):
        chunk = ids[done : done + CHUNKS[tx.engine]]
        done += len(chunk)
        if rows := await tx.all(TAKE_EVENTS, items(chunk)):
            count += await tx.run(DELETE_EVENTS, items([row["id"] for row in rows]))
    return done, count


async def expire_parked(tx: Tx, ids: Sequence[str], clock: Clock) -> tuple[int, Counter[str]]:
    """Cancel those of `ids` that still wait at a webhook that is not active.

    How many of `ids` were dealt with until the time was up, and how many ended by webhook.
    """
    cancelled: Counter[str] = Counter()
    done = 0
    await by_index(tx)
    began = clock.monotonic()
    # All lanes at once and in their order: after a first delivery no lane may be waited for.
    names = [row["webhook_id"] for row in await tx.all(WEBHOOKS, items(ids))]
    inactive = {row["webhook_id"] for row in await tx.all(TAKE_LANES, items(names))}
    while done < len(ids) and (not done or clock.monotonic() - began < UNIT_SECONDS):
        chunk = ids[done : done + CHUNKS[tx.engine]]
        done += len(chunk)
        ending = [
            row
            for row in await tx.all(TAKE_PARKED, items(chunk))
            if row["state"] in ("ready", "held") and row["webhook_id"] in inactive
        ]
        if ending:
            await tx.run(CANCEL, items([row["id"] for row in ending]), tx.now)
            cancelled.update(row["webhook_id"] for row in ending)
    return done, cancelled


async def expire_secrets(tx: Tx, limit: int) -> int:
    """Forget up to `limit` replaced secrets whose time is over; how many went."""
    return await tx.run(EXPIRE_SECRETS, tx.now, limit)
