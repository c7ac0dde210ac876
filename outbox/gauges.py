"""How much waits in the outbox, and how its webhooks fare: read now and then, off any hot path.

Waiting rows are counted in pieces of the index, each a short transaction of its own, until the
time for one reading is used up; the next reading goes on where this one stopped. So some 100,000
waiting rows are counted anew each time, and a million in ten readings or so; until its turn comes,
a webhook keeps the count that it had.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from outbox.database.plans import by_index
from outbox.database.sql import IDS, items
from outbox.database.transaction import DUTIES, Database, Row, Tx
from outbox.lanes import due_now

READING_SECONDS = 0.05
"""No piece is begun that would end later, judged by the one before."""
PIECE_ROWS = 10_000
FEWEST_ROWS = 500
PIECE_SECONDS = 0.01
MOST_HELD = 20_000
LONGEST_WAITING = 500
Place = tuple[str, bool, int]
START: Place = ("", False, 0)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits at one webhook; `oldest_age` in seconds since its oldest row was due."""

    pending: int
    oldest_age: float


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How one webhook stands; `last_success_at` in microseconds UTC."""

    up: bool
    last_success_at: int | None
    host: str = ""
    failing: bool = False
    """Whether its last attempt failed."""


@dataclass(slots=True)
class Gauges:
    """One reading. `oldest_ready_age` in seconds, 0 when nothing that could go is waiting."""

    states: Counter[str] = field(default_factory=Counter)
    oldest_ready_age: float = 0.0
    endpoints: Counter[tuple[str, str]] = field(default_factory=Counter)
    waiting: dict[str, Waiting] = field(default_factory=dict)
    standing: dict[str, Endpoint] = field(default_factory=dict)


@dataclass(slots=True)
class Count:
    """The rows of one webhook, as far as they were counted, and how its lane stood then."""

    active: bool
    oldest: int
    counted_at: int
    rows: int = 0
    due: int = 0


@dataclass(frozen=True, slots=True)
class _Piece:
    """One piece: the due clock, where it ends (None at the very end), and what is in it."""

    now: int
    end: Place | None
    rows: list[Row]
    inside: int = 0
    """Rows of the one webhook that it lies inside of; `rows` is empty then."""
    inside_due: int = 0


# Where a piece ends. Rows of one place are never parted, however many they are.
PIECE_END = """
select webhook_id, retry, next_at from deliveries /*sqlite indexed by deliveries_ready*/
where state = 'ready' and (webhook_id, retry, next_at) > ($1, $2, $3)
order by webhook_id, retry, next_at limit 1 offset $4
"""

PIECE = """
select r.webhook_id, l.active, r.n, r.due, r.oldest from (
  select webhook_id, count(*) as n, min(next_at) as oldest,
    sum(case when next_at <= $4 then 1 else 0 end) as due
  from deliveries /*sqlite indexed by deliveries_ready*/
  where state = 'ready' and (webhook_id, retry, next_at) > ($1, $2, $3){until}
  group by webhook_id
) as r join lanes l on l.webhook_id = r.webhook_id
"""
PIECE_UNTIL = PIECE.format(until=" and (webhook_id, retry, next_at) <= ($5, $6, $7)")
LAST_PIECE = PIECE.format(until="")

# Inside a long queue, where all or none is due: a fifth of the cost of the above.
INSIDE = """
select count(*) as n from deliveries /*sqlite indexed by deliveries_ready*/
where webhook_id = $1 and state = 'ready' and retry = $2 and next_at > $3 and next_at <= $4
"""

# Two partial indexes hold just these rows.
TAKEN = f"""
select 'in_flight' as state, count(*) as n from deliveries where state = 'in_flight'
union all
select 'held', count(*) from (
  select 1 as one from deliveries where state = 'held' limit {MOST_HELD}) as held
"""

# Of the lanes that have gone longest without a turn; a stall of the drain is there first. A failing
# receiver's backlog is no stall of ours: it waits for its next try.
OLDEST = f"""
select min(case when head > wait_until then head else wait_until end) as since from (
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
"""

ENDPOINTS = "select state, circuit, count(*) as n from webhooks group by state, circuit"
STANDING = f"""
select w.id, w.state, w.circuit, w.last_success_at, w.url, l.failing
from webhooks w left join lanes l on l.webhook_id = w.id where w.id in {IDS}
"""
RECENT = """
select id from webhooks where last_success_at >= $1 order by last_success_at desc limit $2
"""

Choose = Callable[[Mapping[str, Waiting]], Collection[str]]
"""Told what waits at which webhook; those whose standing is wanted."""


class Readings:
    """Takes readings of one database, one after another."""

    def __init__(
        self, db: Database, seconds: float = READING_SECONDS, rows: int = PIECE_ROWS
    ) -> None:
        self._db = db
        self._seconds = seconds
        self._most_rows = self._rows = rows
        self._place = START
        self._partial: dict[str, Count] = {}
        self._growing: str | None = None
        """The webhook that is told of before it is counted to its end, since none knew it."""
        # What is told, with what follows from it kept beside it: summing up or sorting tens of
        # thousands of webhooks for each reading would hold the loop for longer than the reading.
        self._told: dict[str, tuple[bool, int, int]] = {}
        self._order: list[str] = []
        self._waiting: dict[str, Waiting] = {}
        self._states: Counter[str] = Counter()
        self.complete = False
        """Whether every row has been counted once; before that, counts are too low."""

    async def take(self, choose: Choose) -> Gauges:
        """Go on counting until the time is up; `standing` is of the webhooks that are chosen."""
        monotonic = self._db.clock.monotonic
        began = monotonic()
        gauges = await self._db.scan(DUTIES, _others)
        last = False
        while not last:
            before = monotonic()
            last = await self._piece()
            took = monotonic() - before
            self._pace(took)
            if before + 2 * took - began >= self._seconds:
                break
        gauges.states.update(self._states)
        gauges.waiting = dict(self._waiting)
        if chosen := choose(gauges.waiting):
            gauges.standing = await self._db.scan(DUTIES, _standing, list(chosen))
        return gauges

    async def recent(self, since: int, most: int) -> list[str]:
        """Webhooks that took a delivery at `since` (microseconds UTC) or later, the last first."""
        return await self._db.scan(DUTIES, _recent, since, most)

    def _pace(self, took: float) -> None:
        """Shorter pieces on a busy machine, so that no reading ends much too late."""
        if took > PIECE_SECONDS:
            self._rows = max(self._rows // 2, min(FEWEST_ROWS, self._most_rows))
        elif took < PIECE_SECONDS / 3:
            self._rows = min(self._rows * 2, self._most_rows)

    async def _piece(self) -> bool:
        """Count one piece; whether it was the last of a pass."""
        piece = await self._db.scan(DUTIES, _count, self._place, self._rows)
        end = piece.end
        for row in piece.rows:
            _merge(self._partial, row, piece.now)
        # Its first rows were met in an earlier piece, or the place would not lie inside it; only
        # one without a lane is not told of at all.
        inside = self._partial.get(self._place[0])
        if piece.inside and inside is not None:
            inside.rows += piece.inside
            inside.due += piece.inside_due
            if self._growing == self._place[0]:
                self._tell(self._place[0], inside)
        if end is None or end[0] != self._place[0]:
            self._finish(self._place[0], None if end is None else end[0])
        if end is not None and end[0] not in self._told and end[0] in self._partial:
            self._growing = end[0]
            insort(self._order, end[0])
            self._tell(end[0], self._partial[end[0]])
        self._place = START if end is None else end
        self.complete = self.complete or end is None
        return end is None

    def _finish(self, start: str, upto: str | None) -> None:
        """Every webhook from `start` on and before `upto` has been counted to its end."""
        met = sorted(known for known in self._partial if upto is None or known < upto)
        first = bisect_left(self._order, start)
        last = len(self._order) if upto is None else bisect_left(self._order, upto, first)
        for webhook_id in self._order[first:last]:
            if webhook_id not in self._partial:
                # Not met, so nothing of it is ready.
                self._withdraw(webhook_id)
                del self._waiting[webhook_id]
        self._order[first:last] = met
        for webhook_id in met:
            self._tell(webhook_id, self._partial.pop(webhook_id))
        self._growing = None

    def _tell(self, webhook_id: str, count: Count) -> None:
        """Tell of `webhook_id` what was counted, in place of what was told before."""
        if webhook_id in self._told:
            self._withdraw(webhook_id)
        states = self._states
        if count.active:
            states["ready"] += count.due
            states["scheduled"] += count.rows - count.due
        else:
            states["parked"] += count.rows
        self._told[webhook_id] = count.active, count.rows, count.due
        age = max(0, count.counted_at - count.oldest) / 1e6
        self._waiting[webhook_id] = Waiting(count.rows, age)

    def _withdraw(self, webhook_id: str) -> None:
        active, rows, due = self._told.pop(webhook_id)
        if active:
            self._states["ready"] -= due
            self._states["scheduled"] -= rows - due
        else:
            self._states["parked"] -= rows


async def _count(tx: Tx, start: Place, rows: int) -> _Piece:
    """The piece after `start`."""
    await by_index(tx)
    now = await due_now(tx)
    found = await tx.one(PIECE_END, *start, rows - 1)
    if found is None:
        return _Piece(now, None, await tx.all(LAST_PIECE, *start, now))
    end = (str(found["webhook_id"]), bool(found["retry"]), int(found["next_at"]))
    if start[:2] == end[:2] and (end[2] <= now or start[2] > now):
        row = await tx.one(INSIDE, *start, end[2])
        n = 0 if row is None else int(row["n"])
        return _Piece(now, end, [], n, n if end[2] <= now else 0)
    return _Piece(now, end, await tx.all(PIECE_UNTIL, *start, now, *end))


def _merge(counts: dict[str, Count], row: Row, now: int) -> None:
    count = counts.get(row["webhook_id"])
    if count is None:
        count = counts[row["webhook_id"]] = Count(bool(row["active"]), row["oldest"], now)
    count.rows += int(row["n"])
    count.due += int(row["due"])
    count.oldest = min(count.oldest, row["oldest"])


async def _others(tx: Tx) -> Gauges:
    """Everything but what is ready, and how single webhooks stand."""
    gauges = Gauges()
    now = await due_now(tx)
    oldest = await tx.one(OLDEST, now)
    if oldest is not None and oldest["since"] is not None:
        gauges.oldest_ready_age = max(now - int(oldest["since"]), 0) / 1e6
    for row in await tx.all(TAKEN):
        gauges.states[row["state"]] += row["n"]
    for row in await tx.all(ENDPOINTS):
        gauges.endpoints[row["state"], row["circuit"]] = row["n"]
    return gauges


async def _standing(tx: Tx, webhooks: list[str]) -> dict[str, Endpoint]:
    found = {}
    for row in await tx.all(STANDING, items(webhooks)):
        up = row["circuit"] == "closed" and row["state"] != "disabled"
        host = _host(row["url"])
        found[row["id"]] = Endpoint(up, row["last_success_at"], host, bool(row["failing"]))
    return found


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        # Damaged on the disk; the reading of all others goes on.
        return ""


async def _recent(tx: Tx, since: int, most: int) -> list[str]:
    return [row["id"] for row in await tx.all(RECENT, since, most)]
