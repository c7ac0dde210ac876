"""Count waiting rows in pieces of their index, each in a short transaction.

A pass covers all rows, one piece at a time; until its turn comes, a webhook keeps its previous
count. Each reading counts about 100,000 waiting rows, so ten readings count a million.
"""

from bisect import bisect_left, insort
from collections import Counter
from dataclasses import dataclass

from outbox.database.index_plans import by_index
from outbox.database.transaction import DUTIES, Database, Row, Tx
from outbox.durations import SECOND
from outbox.queue.log.backlogs import Backlog, Behind
from outbox.queue.state.lanes import due_now

FEWEST_ROWS = 500
PIECE_SECONDS = 0.01
Place = tuple[str, bool, int]
START: Place = ("", False, 0)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits at one webhook; `oldest_age` is in seconds since its oldest row was due."""

    pending: int
    oldest_age: float


@dataclass(slots=True)
class Count:
    """The counted rows of one webhook, and the state of its lane at that time."""

    owner_id: str
    active: bool
    closed: bool
    """Whether its circuit is closed."""
    wait_until: int
    """Until when it waits for the rate of its owner, or because its receiver asked for it."""
    oldest: int
    counted_at: int
    rows: int = 0
    due: int = 0
    firsts: int = 0
    """First attempts that are due."""
    first: int | None = None
    """When the oldest first attempt is due."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """One piece: the due clock, its end (None at the end of the index) and its counts."""

    now: int
    end: Place | None
    rows: list[Row]
    inside: int = 0
    """Rows of the one webhook that contains the whole piece; `rows` is empty then."""
    inside_due: int = 0


# The end of a piece. Rows of one position always stay together, however many they are.
PIECE_END = """
select webhook_id, retry, next_at from deliveries /*sqlite indexed by deliveries_ready*/
where state = 'ready' and (webhook_id, retry, next_at) > ($1, $2, $3)
order by webhook_id, retry, next_at limit 1 offset $4
"""

PIECE = """
select r.webhook_id, l.owner_id, l.active, l.probe_at is null as closed, l.wait_until, r.n, r.due,
  r.oldest, r.firsts, r.first
from (
  select webhook_id, count(*) as n, min(next_at) as oldest,
    sum(case when next_at <= $4 then 1 else 0 end) as due,
    sum(case when next_at <= $4 and retry = false then 1 else 0 end) as firsts,
    min(case when retry = false then next_at end) as first
  from deliveries /*sqlite indexed by deliveries_ready*/
  where state = 'ready' and (webhook_id, retry, next_at) > ($1, $2, $3){until}
  group by webhook_id
) as r join lanes l on l.webhook_id = r.webhook_id
"""
PIECE_UNTIL = PIECE.format(until=" and (webhook_id, retry, next_at) <= ($5, $6, $7)")
LAST_PIECE = PIECE.format(until="")

# Inside a long queue, where all or none is due: a fifth of the cost of the query above.
INSIDE = """
select count(*) as n from deliveries /*sqlite indexed by deliveries_ready*/
where webhook_id = $1 and state = 'ready' and retry = $2 and next_at > $3 and next_at <= $4
"""


class Counting:
    """Counts the waiting rows of one database, one piece after another, pass after pass."""

    def __init__(self, db: Database, rows: int) -> None:
        self._db = db
        self._most_rows = self._rows = rows
        self._place = START
        self._partial: dict[str, Count] = {}
        self._growing: str | None = None
        """A webhook reported before its count is complete, because it was not known before."""
        # The reported counts, with their totals kept up to date: summing or sorting tens of
        # thousands of webhooks for each reading would block the loop for longer than the reading.
        self._reported: dict[str, tuple[bool, int, int]] = {}
        self._order: list[str] = []
        self.waiting: dict[str, Waiting] = {}
        self.states: Counter[str] = Counter()
        self.behind = Behind()

    def pace(self, took: float) -> None:
        """Shorten the pieces on a busy machine, so that no reading ends much too late."""
        if took > PIECE_SECONDS:
            self._rows = max(self._rows // 2, min(FEWEST_ROWS, self._most_rows))
        elif took < PIECE_SECONDS / 3:
            self._rows = min(self._rows * 2, self._most_rows)

    async def piece(self) -> bool:
        """Count one piece; return whether it was the last of a pass."""
        piece = await self._db.scan(DUTIES, _count, self._place, self._rows)
        end = piece.end
        for row in piece.rows:
            _merge(self._partial, row, piece.now)
        # An earlier piece met its first rows, or the position would not be inside it; only a
        # webhook without a lane is not reported at all.
        inside = self._partial.get(self._place[0])
        if piece.inside and inside is not None:
            inside.rows += piece.inside
            inside.due += piece.inside_due
            # The place is of a first attempt or of a retry.
            inside.firsts += 0 if self._place[1] else piece.inside_due
            if self._growing == self._place[0]:
                self._report(self._place[0], inside)
        if end is None or end[0] != self._place[0]:
            self._finish(self._place[0], None if end is None else end[0])
        if end is not None and end[0] not in self._reported and end[0] in self._partial:
            self._growing = end[0]
            insort(self._order, end[0])
            self._report(end[0], self._partial[end[0]])
        self._place = START if end is None else end
        return end is None

    def _finish(self, start: str, upto: str | None) -> None:
        """Complete the counts of every webhook from `start` on and before `upto`."""
        met = sorted(known for known in self._partial if upto is None or known < upto)
        first = bisect_left(self._order, start)
        last = len(self._order) if upto is None else bisect_left(self._order, upto, first)
        for webhook_id in self._order[first:last]:
            if webhook_id not in self._partial:
                # The pass did not meet it, so none of its rows is ready.
                self._withdraw(webhook_id)
                self.behind.drop(webhook_id)
                del self.waiting[webhook_id]
        self._order[first:last] = met
        for webhook_id in met:
            self._report(webhook_id, self._partial.pop(webhook_id))
        self._growing = None

    def _report(self, webhook_id: str, count: Count) -> None:
        """Report the count of `webhook_id` in place of its previous report."""
        if webhook_id in self._reported:
            self._withdraw(webhook_id)
        states = self.states
        if count.active:
            states["ready"] += count.due
            states["scheduled"] += count.rows - count.due
        else:
            states["parked"] += count.rows
        self._reported[webhook_id] = count.active, count.rows, count.due
        age = max(0, count.counted_at - count.oldest) / SECOND
        self.waiting[webhook_id] = Waiting(count.rows, age)
        if count.active and count.closed and count.first is not None:
            self.behind.put(webhook_id, _backlog(count, count.first))
        else:
            self.behind.drop(webhook_id)

    def _withdraw(self, webhook_id: str) -> None:
        active, rows, due = self._reported.pop(webhook_id)
        if active:
            self.states["ready"] -= due
            self.states["scheduled"] -= rows - due
        else:
            self.states["parked"] -= rows


async def _count(tx: Tx, start: Place, rows: int) -> _Piece:
    """Count the piece after `start`."""
    await by_index(tx)
    now = await due_now(tx)
    row = await tx.one(PIECE_END, *start, rows - 1)
    if row is None:
        return _Piece(now, None, await tx.all(LAST_PIECE, *start, now))
    end = (str(row["webhook_id"]), bool(row["retry"]), int(row["next_at"]))
    if start[:2] == end[:2] and (end[2] <= now or start[2] > now):
        row = await tx.one(INSIDE, *start, end[2])
        n = 0 if row is None else int(row["n"])
        return _Piece(now, end, [], n, n if end[2] <= now else 0)
    return _Piece(now, end, await tx.all(PIECE_UNTIL, *start, now, *end))


def _backlog(count: Count, first: int) -> Backlog:
    now = count.counted_at
    late = now - max(first, count.wait_until)
    return Backlog(count.owner_id, count.firsts, (now - first) / SECOND, late / SECOND)


def _merge(counts: dict[str, Count], row: Row, now: int) -> None:
    count = counts.get(row["webhook_id"])
    if count is None:
        count = counts[row["webhook_id"]] = Count(
            row["owner_id"], bool(row["active"]), bool(row["closed"]), row["wait_until"],
            row["oldest"], now,
        )  # fmt: skip
    count.rows += int(row["n"])
    count.due += int(row["due"])
    count.firsts += int(row["firsts"])
    if count.first is None:
        # The first attempts come before the retries, in the order of their times.
        count.first = row["first"]
    count.oldest = min(count.oldest, row["oldest"])
