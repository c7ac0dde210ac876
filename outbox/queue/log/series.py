"""Read figures of webhooks for charts: by step of time, by webhook, and what waits now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from outbox.database.plans import by_hash
from outbox.database.transaction import Row, Tx
from outbox.queue.state.figures import BOUNDS, EVENT, FILTERED, LOST, TIMES

REACHED = frozenset(
    {"success", "throttled", "http_3xx", "http_4xx", "http_5xx", "timeout", "protocol_error"}
)
"""The outcomes of attempts that reached the receiver, so that their duration is its own."""
RETRIES_SEEN = 1000
"""The age of the oldest waiting delivery is exact up to this number of waiting retries."""

Scope = Literal["owner", "webhook"]
SCOPES: dict[Scope, str] = {
    "owner": "subject_id in (select id from webhooks where owner_id = $1)",
    "webhook": "subject_id = $1",
}
SUMS = ", ".join(f"cast(sum({name}) as bigint) as {name}" for name in ("count", *TIMES))
# Without counts by duration: for fifty webhooks and thirty days they cost more than all the rest.
FEW_SUMS = "cast(sum(count) as bigint) as count, cast(sum(total_us) as bigint) as total_us"
BY_STEP = f"""
select at / $2 * $2 as step, result, {SUMS} from figures
where {{scope}} and at >= $3 and at < $4 group by at / $2 * $2, result
"""
BY_WEBHOOK = f"""
select subject_id, result, {FEW_SUMS} from figures
where {SCOPES["owner"]} and at >= $2 and at < $3 group by subject_id, result
"""
EVENTS = f"""
select cast(coalesce(sum(count), 0) as bigint) as count from figures
where subject_id = $1 and result = '{EVENT}' and at >= $2 and at < $3
"""

# A first attempt is due when its delivery is made, so the soonest is the oldest.
PENDING = """
select w.id, (
  select count(*) from (
    select 1 as one from deliveries /*sqlite indexed by deliveries_ready*/
    where webhook_id = w.id and state = 'ready' limit $2) as ready) as waiting, (
  select min(created_at) from (
    select * from (
      select created_at from deliveries /*sqlite indexed by deliveries_ready*/
      where webhook_id = w.id and state = 'ready' and retry = false
      order by next_at limit 1) as firsts
    union all
    select * from (
      select created_at from deliveries /*sqlite indexed by deliveries_ready*/
      where webhook_id = w.id and state = 'ready' and retry = true
      order by next_at limit $3) as retries) as heads) as oldest
from webhooks w where {scope}
"""


@dataclass(slots=True)
class Figures:
    """How the attempts of some webhooks ended in a period."""

    results: Counter[str] = field(default_factory=Counter)
    times: list[int] = field(default_factory=lambda: [0] * len(TIMES))
    """Attempts that reached the receiver, by their duration."""
    total_us: int = 0
    """The sum of their durations, where they are not counted by duration."""

    @property
    def succeeded(self) -> int:
        """Attempts that the receiver accepted, which is also the number of deliveries."""
        return self.results["success"]

    @property
    def failures(self) -> list[tuple[str, int]]:
        """Outcomes of failed attempts with their numbers, the most frequent first."""
        rest = (*LOST, FILTERED, "success", "aborted")
        return [pair for pair in self.results.most_common() if pair[0] not in rest and pair[1]]

    @property
    def failed(self) -> int:
        """Attempts that failed, without aborted ones."""
        return sum(count for _, count in self.failures)

    @property
    def lost(self) -> int:
        """Deliveries that ended without success."""
        return sum(self.results[end] for end in LOST)

    @property
    def rate(self) -> float | None:
        """The part of attempts that succeeded, from 0 to 1."""
        tried = self.succeeded + self.failed
        return self.succeeded / tried if tried else None

    @property
    def average(self) -> int | None:
        """Microseconds: the average duration of attempts that reached the receiver."""
        reached = sum(self.results[result] for result in REACHED)
        return self.total_us // reached if reached else None

    def duration(self, part: float) -> int | None:
        """Return microseconds within which this part of the attempts ended, interpolated."""
        rank, passed = part * sum(self.times), 0
        if not rank:
            return None
        for place, count in enumerate(self.times):
            if count and passed + count >= rank:
                least = BOUNDS[place - 1] if place else 0
                most = BOUNDS[place] if place < len(BOUNDS) else 2 * BOUNDS[-1]
                return round(least + (most - least) * (rank - passed) / count)
            passed += count
        return 2 * BOUNDS[-1]

    def add(self, row: Row) -> None:
        """Add a row of sums."""
        self.results[row["result"]] += row["count"]
        if row["result"] in REACHED:
            self.times = [sum_ + row[name] for sum_, name in zip(self.times, TIMES, strict=True)]

    def merge(self, other: Figures) -> None:
        """Add the figures of another period."""
        self.results.update(other.results)
        self.times = [one + two for one, two in zip(self.times, other.times, strict=True)]


@dataclass(frozen=True, slots=True)
class Pending:
    """What waits at a webhook, counted up to a limit; `oldest_at` is when the oldest was made."""

    waiting: int = 0
    oldest_at: int | None = None


async def by_step(
    tx: Tx, scope: Scope, scope_id: str, start: int, step: int, count: int
) -> list[Figures]:
    """Return the figures of `count` steps from `start` on, a multiple of `step`."""
    await by_hash(tx)
    steps = [Figures() for _ in range(count)]
    text = BY_STEP.format(scope=SCOPES[scope])
    for row in await tx.all(text, scope_id, step, start, start + step * count):
        steps[(row["step"] - start) // step].add(row)
    return steps


async def by_webhook(tx: Tx, owner_id: str, start: int, end: int) -> dict[str, Figures]:
    """Return the figures of an owner's webhooks between two moments, without `times`."""
    await by_hash(tx)
    by_id: dict[str, Figures] = {}
    for row in await tx.all(BY_WEBHOOK, owner_id, start, end):
        figures = by_id.setdefault(row["subject_id"], Figures())
        figures.results[row["result"]] += row["count"]
        figures.total_us += row["total_us"] if row["result"] in REACHED else 0
    return by_id


async def events(tx: Tx, owner_id: str, start: int, end: int) -> int:
    """Return the number of an owner's events between two moments."""
    row = await tx.one(EVENTS, owner_id, start, end)
    return 0 if row is None else int(row["count"])


async def pending(tx: Tx, scope: Scope, scope_id: str, most: int) -> dict[str, Pending]:
    """Return what waits at each webhook, counting up to `most` of each."""
    text = PENDING.format(scope="w.owner_id = $1" if scope == "owner" else "w.id = $1")
    rows = await tx.all(text, scope_id, most, RETRIES_SEEN)
    return {row["id"]: Pending(int(row["waiting"]), row["oldest"]) for row in rows}


async def since(tx: Tx) -> int:
    """Return the moment from which on attempts and events are counted."""
    row = await tx.one("select figures_since from outbox_state")
    return 0 if row is None else int(row["figures_since"])


def total(steps: Sequence[Figures]) -> Figures:
    """Return the sum of steps."""
    result = Figures()
    for step in steps:
        result.merge(step)
    return result
