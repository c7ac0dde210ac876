"""Read gauges of the outbox: waiting deliveries and the condition of webhooks.

Readings run periodically, off any hot path. They count waiting rows piece by piece
(outbox.queue.log.waiting_counts) until the time for one reading is used up; the next reading
continues from there.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from outbox.database.sql import IDS, items
from outbox.database.transaction import DUTIES, Database, Tx
from outbox.durations import SECOND
from outbox.queue.log.backlogs import Backlogs
from outbox.queue.log.certificate_ends import Ending, EndingCertificates, Piece
from outbox.queue.log.waiting_counts import Counting, Waiting
from outbox.queue.state.lanes import due_now

READING_SECONDS = 0.05
"""A piece starts only if it would end within this time, judged by the previous piece."""
PIECE_ROWS = 10_000
MOST_HELD = 20_000
LONGEST_WAITING = 500


@dataclass(frozen=True, slots=True)
class WebhookHealth:
    """The condition of one webhook; `last_success_at` is in microseconds UTC."""

    up: bool
    last_success_at: int | None
    host: str = ""
    failing: bool = False
    """Whether its last attempt failed."""


@dataclass(slots=True)
class Gauges:
    """One reading. `oldest_ready_age` is in seconds, 0 when no sendable delivery waits."""

    states: Counter[str] = field(default_factory=Counter)
    oldest_ready_age: float = 0.0
    backed_up_at: int | None = None
    """When the last backup was made, in microseconds UTC."""
    endpoints: Counter[tuple[str, str]] = field(default_factory=Counter)
    waiting: dict[str, Waiting] = field(default_factory=dict)
    backlogs: Backlogs = field(default_factory=Backlogs)
    standing: dict[str, WebhookHealth] = field(default_factory=dict)
    ending: list[Ending] = field(default_factory=list)
    moves: Counter[str] = field(default_factory=Counter)
    """Owners that move or have moved away, by state."""
    move_changes: int = 0
    """Changes of owners who move that are not copied yet, up to MOST_CHANGES."""
    closed_age: float = 0.0
    """Seconds for which the owner closed longest has been closed for a move, 0 without one."""


# Two partial indexes contain just these rows.
TAKEN = f"""
select 'in_flight' as state, count(*) as n from deliveries where state = 'in_flight'
union all
select 'held', count(*) from (
  select 1 as one from deliveries where state = 'held' limit {MOST_HELD}) as held
"""

# Of the lanes with the longest time since their turn, where a stall of the drain shows first. The
# backlog of a failing receiver is no stall of the drain: it waits for its next attempt. On
# PostgreSQL also of the events that no node has fanned out.
OLDEST = f"""
select min(since) as since from (
select case when head > wait_until then head else wait_until end as since from (
  select l.wait_until, (
    select min(next_at) from (
      select * from (
        select next_at from deliveries
        where webhook_id = l.webhook_id and state = 'ready' and retry = false
        order by next_at limit 1) as firsts
      union all
      select * from (
        select next_at from deliveries
        where webhook_id = l.webhook_id and state = 'ready' and retry = true
        order by next_at limit 1) as retries
    ) as heads) as head
  from (
    select webhook_id, wait_until from lanes
    where active and due_at is not null and failing = false and due_at <= $1
    order by due_at limit {LONGEST_WAITING}) as l
) as queues
/*postgres union all
select * from (
  select coalesce(due_at, occurred_at) from events where seq is null order by pos limit 1
) as unseen*/
) as oldest
"""

BACKED_UP = "select backed_up_at from outbox_state where id = 1"
ENDPOINTS = "select state, circuit, count(*) as n from webhooks group by state, circuit"
MOVES = """
select state, count(*) as n, min(changed_at) as since from owners
where state <> 'here' group by state
"""
MOST_CHANGES = 100_000
CHANGES = f"select count(*) as n from (select 1 from move_changes limit {MOST_CHANGES}) as noted"
CLOSED = ("resting", "leaving")
STANDING = f"""
select w.id, w.state, w.last_success_at, w.url, l.failing
from webhooks w left join lanes l on l.webhook_id = w.id where w.id in {IDS}
"""
RECENT = """
select id from webhooks where last_success_at >= $1 order by last_success_at desc limit $2
"""

Choose = Callable[[Mapping[str, Waiting]], Collection[str]]
"""Takes what waits at each webhook; returns the webhooks to read the condition of."""


class Readings:
    """Takes readings of one database, one after another."""

    def __init__(
        self, db: Database, seconds: float = READING_SECONDS, rows: int = PIECE_ROWS
    ) -> None:
        self._db = db
        self._seconds = seconds
        self._counting = Counting(db, rows)
        self._certificates = EndingCertificates()
        self._counted = False
        self.complete = False
        """Whether every row has been counted once; until then, counts are too low."""

    async def take(self, choose: Choose) -> Gauges:
        """Count until the time is up; `standing` covers the webhooks that `choose` returns."""
        monotonic = self._db.clock.monotonic
        began = monotonic()
        gauges, piece = await self._db.scan(DUTIES, _others, self._certificates)
        gauges.ending = self._certificates.put(piece)
        last = False
        while not last:
            before = monotonic()
            last = await self._counting.piece()
            took = monotonic() - before
            self._counting.pace(took)
            self._counted = self._counted or last
            if before + 2 * took - began >= self._seconds:
                break
        if self._counted and self._certificates.complete:
            self.complete, self._counted = True, False
        gauges.states.update(self._counting.states)
        gauges.waiting = dict(self._counting.waiting)
        gauges.backlogs = self._counting.behind.backlogs()
        if chosen := choose(gauges.waiting):
            gauges.standing = await self._db.scan(DUTIES, _standing, list(chosen))
        return gauges

    async def recent(self, since: int, most: int) -> list[str]:
        """Return webhooks with a delivery at `since` (microseconds UTC) or later, latest first."""
        return await self._db.scan(DUTIES, _recent, since, most)


async def _others(tx: Tx, certificates: EndingCertificates) -> tuple[Gauges, Piece]:
    """Return the gauges except ready deliveries and the condition of single webhooks."""
    gauges = Gauges()
    now = await due_now(tx)
    oldest = await tx.one(OLDEST, now)
    if oldest is not None and oldest["since"] is not None:
        gauges.oldest_ready_age = max(now - int(oldest["since"]), 0) / SECOND
    backup = await tx.one(BACKED_UP)
    gauges.backed_up_at = None if backup is None else backup["backed_up_at"]
    for row in await tx.all(TAKEN):
        gauges.states[row["state"]] += row["n"]
    for row in await tx.all(ENDPOINTS):
        gauges.endpoints[row["state"], row["circuit"]] = row["n"]
    for row in await tx.all(MOVES):
        gauges.moves[row["state"]] = row["n"]
        if row["state"] in CLOSED:
            gauges.closed_age = max(gauges.closed_age, (tx.now - row["since"]) / SECOND)
    if gauges.moves:
        noted = await tx.one(CHANGES)
        gauges.move_changes = 0 if noted is None else noted["n"]
    return gauges, await certificates.read(tx)


async def _standing(tx: Tx, webhooks: list[str]) -> dict[str, WebhookHealth]:
    standings = {}
    for row in await tx.all(STANDING, items(webhooks)):
        up = row["state"] != "disabled" and not (row["state"] == "active" and row["failing"])
        host = _host(row["url"])
        standings[row["id"]] = WebhookHealth(up, row["last_success_at"], host, bool(row["failing"]))
    return standings


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        # The URL is damaged on disk; the reading of all others continues.
        return ""


async def _recent(tx: Tx, since: int, most: int) -> list[str]:
    return [row["id"] for row in await tx.all(RECENT, since, most)]
