"""Delete finished deliveries and events past their retention, and cancel old parked deliveries.

Ids begin with their creation time, so old rows are a range of the primary key and need no index of
their own. A scan connection reads them page by page; short units delete them, so that other writes
do not wait long. It is one module because all kinds of rows expire by the same steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from outbox.clock import Clock
from outbox.database import free_pages, times
from outbox.database.index_plans import by_index
from outbox.database.pacing import JobPace
from outbox.database.sql import IDS, items
from outbox.database.transaction import DUTIES, Database, Row, Tx
from outbox.durations import DAY
from outbox.ids import first_at
from outbox.queue.state import (
    attempt_counts,
    chain_gaps,
    deleted_webhooks,
    deletion_marks,
    fanout_remainders,
    head_deliveries,
)

PAGE = 500
COUNTS = 100
UNIT_SECONDS = 0.008
"""After this time a unit starts no further chunk."""
CHUNKS = {"sqlite": 20, "postgres": 250}


@dataclass(frozen=True, slots=True)
class Past:
    """Rows from before `at` (microseconds UTC) have an id below `first_kept`."""

    at: int
    first_kept: str


# Deliveries that wait at a webhook that is not active are parked.
DELIVERIES = """
select d.id, d.webhook_id,
  case when d.finished_at < $3 then 'finished'
    when d.state in ('ready', 'held') and (
      select l.active from lanes l where l.webhook_id = d.webhook_id) = false then 'parked'
    else 'kept' end as status
from deliveries d where d.id > $1 and d.id < $2 order by d.id limit $4
"""

# One probe of each of the two partial indexes on the event. Not `exists`: PostgreSQL may turn that
# into a hash table of all deliveries first.
UNFINISHED = (
    " or ".join(
        f"""(
    select 1 from deliveries d where d.event_id = events.id and d.origin {sign} 'event'
      and d.state in ('ready', 'in_flight', 'held') limit 1) is not null"""
        for sign in ("=", "<>")
    )
    + f" or ({fanout_remainders.IS_LEFT} limit 1) is not null"
)

EVENTS = f"""
select id, case when seq is not null and occurred_at < $3 and not ({UNFINISHED})
  then 'finished' else 'kept' end as status
from events where id > $1 and id < $2 order by id limit $4
"""

# By id alone: a condition on the state could lead the planner to another index.
TAKE_DELIVERIES = f"""
select id, webhook_id, seq, origin, finished_at from deliveries where id in {IDS}
/*postgres for update skip locked*/
"""
DELETE_ATTEMPTS = f"""
delete from attempts where delivery_id in {IDS} returning webhook_id, place, digest
"""
DELETE_DELIVERIES = f"delete from deliveries where id in {IDS}"

# A replay of an event locks its row while it creates the delivery.
TAKE_EVENTS = f"select id from events where id in {IDS} /*postgres for update skip locked*/"
DELETE_EVENTS = f"delete from events where id in {IDS} and not ({UNFINISHED})"

# Lanes are locked before deliveries; with this lock nobody activates the webhook meanwhile.
WEBHOOKS = f"select distinct webhook_id from deliveries where id in {IDS}"
# A lane is inactive also while the order of an active webhook is turned on.
TAKE_LANES = f"""
select webhook_id from lanes where webhook_id in {IDS} and active = false and turning = false
order by webhook_id /*postgres for update*/
"""
TAKE_PARKED = f"""
select id, webhook_id, state, ordered from deliveries where id in {IDS}
/*postgres for update skip locked*/
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
    """Deletes rows older than a number of days. Run one at a time; a run may be interrupted."""

    def __init__(self, db: Database, *, deliveries_days: int, events_days: int) -> None:
        self._db = db
        self._deliveries = deliveries_days * DAY
        self._events = events_days * DAY
        self._pace = JobPace(db.meter, PAGE, clock=db.clock)

    async def run_once(self) -> None:
        """Run all deletions, and return the freed space to the file system."""
        await self.deliveries()
        await self.events()
        await self.counts()
        await free_pages.give_back(self._db)

    async def deliveries(self) -> None:
        """Delete finished deliveries with their attempts, and cancel those parked for too long."""
        past = await self._db.read(past_of, self._deliveries)
        after = ""
        while page := await self._db.scan(DUTIES, look_through, DELIVERIES, after, past):
            after = page[-1][0]
            await self._all(page, "parked", self._cancel)
            await self._all(page, "finished", self._purge_deliveries, past.at)
        while await self._db.write(chain_gaps.forget, PAGE) == PAGE:
            pass
        while await self._db.write(deleted_webhooks.forget, past.at, PAGE) == PAGE:
            pass
        self._db.observer.swept("deliveries")
        self._db.observer.swept("attempts")

    async def events(self) -> None:
        """Delete events, except those with unfinished deliveries."""
        past = await self._db.read(past_of, self._events)
        after = ""
        while page := await self._db.scan(DUTIES, look_through, EVENTS, after, past):
            after = page[-1][0]
            await self._all(page, "finished", self._purge_events)
        self._db.observer.swept("events")

    async def counts(self) -> None:
        """Delete the counts of past attempts, and fold old ones into longer steps."""
        past = await self._db.read(past_of, self._deliveries)
        now = await self._db.read(past_of, 0)
        while count := await self._db.write(attempt_counts.purge, past.at, COUNTS):
            self._db.observer.purged("figures", count)
        while await self._db.write(attempt_counts.fold, now.at, COUNTS):
            pass
        self._db.observer.swept("figures")

    async def _all(
        self,
        page: Sequence[tuple[str, str]],
        status: str,
        handle: Callable[..., Awaitable[int]],
        *args: int,
    ) -> None:
        """Pass ids of `status` to `handle`, which returns how many it did."""
        ids = [row_id for row_id, row_status in page if row_status == status]
        while ids:
            async with self._pace.step() as most:
                ids = ids[await handle(ids[:most], *args) :]

    async def _purge_deliveries(self, ids: Sequence[str], before: int) -> int:
        done, deliveries, attempts = await self._db.write(
            purge_deliveries, ids, before, self._db.clock
        )
        self._db.observer.purged("deliveries", deliveries)
        self._db.observer.purged("attempts", attempts)
        return done

    async def _purge_events(self, ids: Sequence[str]) -> int:
        done, count = await self._db.write(purge_events, ids, self._db.clock)
        self._db.observer.purged("events", count)
        return done

    async def _cancel(self, ids: Sequence[str]) -> int:
        done, cancelled = await self._db.write(expire_parked, ids, self._db.clock)
        for webhook_id in cancelled.elements():
            self._db.observer.delivery_finished(webhook_id, "cancelled", None)
        return done


async def past_of(tx: Tx, age: int) -> Past:
    """Return the limit of what is older than `age` microseconds.

    By both clocks: a wall clock that is a month ahead must not empty the log. On PostgreSQL the due
    clock is the server's.
    """
    at = await times.earlier(tx) - age
    return Past(at, first_at(at))


async def look_through(tx: Tx, statement: str, after: str, past: Past) -> list[tuple[str, str]]:
    """Return the next PAGE old ids after `after`, each with its status."""
    await by_index(tx)
    rows = await tx.all(statement, after, past.first_kept, past.at, PAGE)
    return [(row["id"], row["status"]) for row in rows]


async def purge_deliveries(
    tx: Tx, ids: Sequence[str], before: int, clock: Clock
) -> tuple[int, int, int]:
    """Delete those of `ids` that finished before `before`, with their attempts.

    Return how many of `ids` were handled in time, and the numbers of deleted deliveries and
    attempts.
    """
    deliveries = attempts = done = 0
    purged: list[Row] = []
    await by_index(tx)
    began = clock.monotonic()
    while done < len(ids) and (not done or clock.monotonic() - began < UNIT_SECONDS):
        chunk = ids[done : done + CHUNKS[tx.engine]]
        done += len(chunk)
        rows = await tx.all(TAKE_DELIVERIES, items(chunk))
        expired = [r for r in rows if r["finished_at"] is not None and r["finished_at"] < before]
        if expired:
            expired_ids = items([row["id"] for row in expired])
            deleted = await tx.all(DELETE_ATTEMPTS, expired_ids)
            attempts += len(deleted)
            await chain_gaps.leave(tx, deleted)
            deliveries += await tx.run(DELETE_DELIVERIES, expired_ids)
            purged += expired
    await deletion_marks.note(tx, purged)
    return done, deliveries, attempts


async def purge_events(tx: Tx, ids: Sequence[str], clock: Clock) -> tuple[int, int]:
    """Delete those of `ids` that have no unfinished delivery.

    Return how many of `ids` were handled in time, and the number of deleted events.
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

    Return how many of `ids` were handled in time, and the number of cancelled ones by webhook.
    """
    cancelled: Counter[str] = Counter()
    done = 0
    await by_index(tx)
    began = clock.monotonic()
    # All lanes at once and in their order: with deliveries locked, this must wait for no lane.
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
            await head_deliveries.promote(tx, [row["id"] for row in ending if row["ordered"]])
            cancelled.update(row["webhook_id"] for row in ending)
    return done, cancelled


async def expire_secrets(tx: Tx, limit: int) -> int:
    """Delete up to `limit` expired replaced secrets; return how many."""
    return await tx.run(EXPIRE_SECRETS, await times.earlier(tx), limit)
