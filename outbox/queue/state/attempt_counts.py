"""Count events of an owner, and how attempts of a webhook end, in steps of time, for charts.

Counts are written in the transaction that records what they count, so they equal the log. Steps
last five minutes; older ones are folded into longer ones, so that 30 days of a webhook are a few
hundred rows. A lane's lock guards the counts of its webhook, and the turn of fan-out those of
owners, so writers never wait for each other here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from outbox.database.index_plans import by_index
from outbox.database.sql import ITEMS, items
from outbox.database.transaction import Row, Tx
from outbox.durations import DAY, HOUR, MINUTE
from outbox.queue.state.claimed_deliveries import Result

STEP = 5 * MINUTE
LEVELS = ((STEP, 3 * HOUR), (3 * STEP, DAY), (2 * HOUR, 7 * DAY), (6 * HOUR, None))
"""The lengths of steps, and how long a time up to now has steps of this length or shorter ones."""
SPANS = tuple(span for span, _ in LEVELS)
EVENT = "event"
"""The result under which events are counted."""
FILTERED = "filtered"
"""The result under which deliveries are counted that conditions of a webhook left out."""
LOST = ("exhausted", "gone", "dead")
"""The ends of deliveries that are counted: the receiver never accepted them."""
BOUNDS = tuple(5_000 << power for power in range(13))
"""The upper bounds of durations, in microseconds; one count is left for longer ones."""
TIMES = tuple(f"t{number}" for number in range(len(BOUNDS) + 1))

Key = tuple[str, int, str]
"""Webhook or owner, start of the step, result."""
Counts = list[int]
"""The number, the sum of the durations, and the numbers by duration."""

SUMS = ("count", "total_us", *TIMES)
ADD = f"""
insert into figures (span, subject_id, at, result, {", ".join(SUMS)})
select cast($2 as bigint), value ->> 0, cast(value ->> 1 as bigint), value ->> 2,
  {", ".join(f"cast(value ->> {3 + number} as bigint)" for number in range(len(SUMS)))}
from {ITEMS} where true
on conflict (subject_id, at, span, result) do update set
  {", ".join(f"{name} = figures.{name} + excluded.{name}" for name in SUMS)}
"""

# By the whole key, because a late result may add to a step while it is folded.
OLD = """
select subject_id, span, at, result from figures /*sqlite indexed by figures_age*/
where span = $1 and at < $2 order by at limit $3
"""
TAKE = f"""
delete from figures where (subject_id, at, span, result) in (
  select value ->> 0, cast(value ->> 1 as bigint), cast(value ->> 2 as bigint), value ->> 3
  from {ITEMS})
returning subject_id, at, result, {", ".join(SUMS)}
"""
# Some rows at a time, because a webhook may have many.
REMOVE = """
delete from figures where subject_id = $1 and at in (
  select at from figures where subject_id = $1 order by at limit $2)
"""


def start_of(moment: int, step: int) -> int:
    """Return the start of the step that contains `moment`."""
    return moment // step * step


def of_results(settled: Iterable[Result], now: int) -> dict[Key, Counts]:
    """Count recorded attempts, and deliveries that ended without success, in their steps."""
    counts: dict[Key, Counts] = {}
    for result in settled:
        webhook_id, outcome = result.delivery.webhook_id, result.outcome
        if outcome is not None:
            key = (webhook_id, start_of(result.started_at, STEP), outcome.outcome)
            entry = _entry(counts, key)
            entry[0] += 1
            entry[1] += outcome.total_us
            entry[2 + bisect_left(BOUNDS, outcome.total_us)] += 1
        if result.decision.state in LOST:
            _entry(counts, (webhook_id, start_of(now, STEP), result.decision.state))[0] += 1
    return counts


async def count_results(tx: Tx, settled: Iterable[Result]) -> None:
    """Count recorded attempts, and deliveries that ended without success."""
    await add(tx, STEP, of_results(settled, tx.now))


async def count_dead(tx: Tx, webhook_ids: Iterable[str]) -> None:
    """Count deliveries of these webhooks that ended dead now, one for each id."""
    await count_fan_out(tx, (), webhook_ids, {})


async def count_fan_out(
    tx: Tx, events: Iterable[Row], dead: Iterable[str], left_out: Mapping[str, int]
) -> None:
    """Count events by owner, except test events, and deliveries that are dead from the start.

    `left_out` counts, by webhook, the deliveries that its conditions left out.
    """
    counts: dict[Key, Counts] = {}
    for event in events:
        if event["webhook_id"] is None:
            _entry(counts, (event["owner_id"], start_of(event["occurred_at"], STEP), EVENT))[0] += 1
    for webhook_id in dead:
        _entry(counts, (webhook_id, start_of(tx.now, STEP), "dead"))[0] += 1
    for webhook_id, count in left_out.items():
        _entry(counts, (webhook_id, start_of(tx.now, STEP), FILTERED))[0] += count
    await add(tx, STEP, counts)


async def fold(tx: Tx, now: int, most: int) -> int:
    """Fold up to `most` counts of each level into the next one; return how many."""
    done = 0
    for (span, age), longer in zip(LEVELS, SPANS[1:], strict=False):
        assert age is not None
        # The first step of a time of this length may begin one step before it.
        rows = await _take(tx, span, start_of(now - age - span, longer), most)
        counts: dict[Key, Counts] = {}
        for row in rows:
            entry = _entry(counts, (row["subject_id"], start_of(row["at"], longer), row["result"]))
            for place, name in enumerate(SUMS):
                entry[place] += int(row[name])
        await add(tx, longer, counts)
        done += len(rows)
    return done


async def purge(tx: Tx, before: int, most: int) -> int:
    """Delete up to `most` counts of each level that end before `before`; return how many."""
    return sum([len(await _take(tx, span, before - span + 1, most)) for span in SPANS])


async def remove(tx: Tx, webhook_id: str, most: int) -> bool:
    """Delete counts of a webhook, of about `most` steps; return whether some may be left."""
    return await tx.run(REMOVE, webhook_id, most) >= most


async def _take(tx: Tx, span: int, before: int, most: int) -> list[Row]:
    await by_index(tx)
    old = await tx.all(OLD, span, before, most)
    if not old:
        return []
    keys = [(row["subject_id"], row["at"], row["span"], row["result"]) for row in old]
    return await tx.all(TAKE, items(keys))


def _entry(counts: dict[Key, Counts], key: Key) -> Counts:
    entry = counts.get(key)
    if entry is None:
        entry = counts[key] = [0] * len(SUMS)
    return entry


async def add(tx: Tx, span: int, counts: Mapping[Key, Sequence[int]]) -> None:
    """Add counts to what is stored for their steps."""
    if counts:
        await tx.run(ADD, items(rows_of(counts)), span)


def rows_of(counts: Mapping[Key, Sequence[int]]) -> list[tuple[Any, ...]]:
    """Return the rows of counts in the order of their keys."""
    return [(*key, *counts[key]) for key in sorted(counts)]
