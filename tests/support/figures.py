"""The figures of the charts against the log that they count."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence

from outbox.database.transaction import Tx
from outbox.durations import DAY
from outbox.queue.state import attempt_counts
from outbox.queue.state.attempt_counts import (
    BOUNDS,
    EVENT,
    LEVELS,
    LOST,
    SPANS,
    STEP,
    TIMES,
    Counts,
    Key,
)

Found = Counter[tuple[str, int, str, str]]
"""Webhook or owner, start of the step, result, and `count`, `total_us` or a step of durations."""


async def of_log(tx: Tx) -> Found:
    """Count the rows of the log, one by one."""
    found: Found = Counter()
    for row in await tx.all("select webhook_id, started_at, outcome, total_us from attempts"):
        key = (row["webhook_id"], row["started_at"] // STEP * STEP, row["outcome"])
        place = sum(1 for bound in BOUNDS if row["total_us"] > bound)
        found[*key, "count"] += 1
        found[*key, "total_us"] += row["total_us"]
        found[*key, TIMES[place]] += 1
    for row in await tx.all("select webhook_id, finished_at, state from deliveries"):
        if row["state"] in LOST:
            found[row["webhook_id"], row["finished_at"] // STEP * STEP, row["state"], "count"] += 1
    for row in await tx.all(
        "select owner_id, occurred_at from events where seq is not null and webhook_id is null"
    ):
        found[row["owner_id"], row["occurred_at"] // STEP * STEP, EVENT, "count"] += 1
    return found


async def stored(tx: Tx) -> Found:
    """Return what the figures say, whatever the length of their steps."""
    found: Found = Counter()
    for row in await tx.all("select * from figures"):
        for name in ("count", "total_us", *TIMES):
            found[row["subject_id"], row["at"], row["result"], name] += row[name]
    return Counter({key: count for key, count in found.items() if count})


def in_longest(found: Found) -> Found:
    """Return the same counts in the longest steps."""
    folded: Found = Counter()
    for (webhook_id, at, result, name), count in found.items():
        folded[webhook_id, at // SPANS[-1] * SPANS[-1], result, name] += count
    return folded


async def fill(
    tx: Tx, webhook_id: str, now: int, shape: Callable[[int], Sequence[tuple[str, int, int]]]
) -> None:
    """Store figures of 30 days in the steps in which they would be kept.

    `shape` takes the start of a step and returns results with their number in five minutes and
    their duration.
    """
    end = now
    for span, kept in LEVELS:
        longer = next((one for one in SPANS if one > span), span)
        start = (now - (kept or 30 * DAY)) // longer * longer
        counts: dict[Key, Counts] = {}
        for moment in range(start, end, STEP):
            for result, count, took in shape(moment):
                if count:
                    key = (webhook_id, moment // span * span, result)
                    found = counts.setdefault(key, [0] * len(attempt_counts.SUMS))
                    found[0] += count
                    found[1] += took * count
                    slower = (1, 1, 1, 2, 1, 1, 2, 1, 1, 4)[moment // STEP % 10]
                    found[2 + bisect_left(BOUNDS, took * slower)] += count
        await attempt_counts.add(tx, span, counts)
        end = start
