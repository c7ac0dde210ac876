"""Count how attempts and deliveries of a webhook end, in steps of time, for its charts.

The counts are made in the transaction that records the attempts, so they equal the log. Steps last
five minutes; after two days they are folded into hours. A lane's lock guards the counts of its
webhook, so writers never wait for each other here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from outbox.database.plans import by_index
from outbox.database.sql import ITEMS, items
from outbox.database.transaction import Row, Tx
from outbox.queue.deliveries import Result

MINUTE = 60_000_000
STEP = 5 * MINUTE
HOUR = 60 * MINUTE
FINE_FOR = 48 * HOUR
"""Steps of five minutes are kept at least this long."""
LOST = ("exhausted", "gone", "dead")
"""The ends of a delivery that count: its receiver never accepted it."""
BOUNDS = tuple(5_000 << power for power in range(13))
"""The upper bounds of durations, in microseconds; one count is left for longer ones."""
TIMES = tuple(f"t{number}" for number in range(len(BOUNDS) + 1))

Key = tuple[str, int, str]
"""Webhook, start of the step, result."""
Counts = list[int]
"""The number, the sum of the durations, and the numbers by duration."""

SUMS = ("count", "total_us", *TIMES)
ADD = f"""
insert into webhook_figures (span, webhook_id, at, result, {", ".join(SUMS)})
select cast($2 as bigint), value ->> 0, cast(value ->> 1 as bigint), value ->> 2,
  {", ".join(f"cast(value ->> {3 + number} as bigint)" for number in range(len(SUMS)))}
from {ITEMS} where true
on conflict (webhook_id, at, span, result) do update set
  {", ".join(f"{name} = webhook_figures.{name} + excluded.{name}" for name in SUMS)}
"""

# By the whole key: a late result may add to a step while it is folded.
OLD = """
select webhook_id, span, at, result from webhook_figures /*sqlite indexed by webhook_figures_age*/
where span = $1 and at < $2 order by at limit $3
"""
TAKE = f"""
delete from webhook_figures where (webhook_id, at, span, result) in (
  select value ->> 0, cast(value ->> 1 as bigint), cast(value ->> 2 as bigint), value ->> 3
  from {ITEMS})
returning webhook_id, at, result, {", ".join(SUMS)}
"""
# Some rows at a time: the owner may have had many results of a webhook.
REMOVE = """
delete from webhook_figures where webhook_id = $1 and at in (
  select at from webhook_figures where webhook_id = $1 order by at limit $2)
"""


def start_of(moment: int, step: int) -> int:
    """Return the start of the step that contains `moment`."""
    return moment // step * step


async def count_results(tx: Tx, settled: Iterable[Result]) -> None:
    """Count recorded attempts, and deliveries that ended without success."""
    counts: dict[Key, Counts] = {}
    for result in settled:
        webhook_id, outcome = result.delivery.webhook_id, result.outcome
        if outcome is not None:
            key = (webhook_id, start_of(result.started_at, STEP), outcome.outcome)
            found = _of(counts, key)
            found[0] += 1
            found[1] += outcome.total_us
            found[2 + bisect_left(BOUNDS, outcome.total_us)] += 1
        if result.decision.state in LOST:
            _of(counts, (webhook_id, start_of(tx.now, STEP), result.decision.state))[0] += 1
    await add(tx, STEP, counts)


async def count_dead(tx: Tx, webhook_ids: Iterable[str]) -> None:
    """Count deliveries of these webhooks that ended dead now, one for each id."""
    counts: dict[Key, Counts] = {}
    for webhook_id in webhook_ids:
        _of(counts, (webhook_id, start_of(tx.now, STEP), "dead"))[0] += 1
    await add(tx, STEP, counts)


async def fold(tx: Tx, before: int, most: int) -> int:
    """Fold up to `most` five-minute counts from before `before` into hours; return how many."""
    rows = await _take(tx, STEP, start_of(before, HOUR), most)
    counts: dict[Key, Counts] = {}
    for row in rows:
        found = _of(counts, (row["webhook_id"], start_of(row["at"], HOUR), row["result"]))
        for place, name in enumerate(SUMS):
            found[place] += int(row[name])
    await add(tx, HOUR, counts)
    return len(rows)


async def purge(tx: Tx, before: int, most: int) -> int:
    """Delete up to `most` counts from before `before`; return how many."""
    return sum([len(await _take(tx, span, before, most)) for span in (STEP, HOUR)])


async def remove(tx: Tx, webhook_id: str, most: int) -> bool:
    """Delete counts of a webhook, of about `most` steps; return whether some may be left."""
    return await tx.run(REMOVE, webhook_id, most) >= most


async def _take(tx: Tx, span: int, before: int, most: int) -> list[Row]:
    await by_index(tx)
    old = await tx.all(OLD, span, before, most)
    if not old:
        return []
    keys = [(row["webhook_id"], row["at"], row["span"], row["result"]) for row in old]
    return await tx.all(TAKE, items(keys))


def _of(counts: dict[Key, Counts], key: Key) -> Counts:
    found = counts.get(key)
    if found is None:
        found = counts[key] = [0] * len(SUMS)
    return found


async def add(tx: Tx, span: int, counts: Mapping[Key, Sequence[int]]) -> None:
    """Add counts to what is stored for their steps."""
    if counts:
        await tx.run(ADD, items([(*key, *counts[key]) for key in sorted(counts)]), span)
