"""Keep a webhook below the limits of its owner: requests in flight at once, and a rate.

Both hold for all nodes together, because a claim decides under the lock of the lane: it counts what
every node has in flight, and after it the lane waits as long as the claimed requests may take. They
only lower what windows and shares give.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from outbox.database.sql import ITEMS, items
from outbox.database.transaction import Row, Tx
from outbox.durations import SECOND
from outbox.queue.state import lanes as lanes_of

AT_ONCE_SHARE = 20
"""A claim takes one in this many of the requests of a second, so that a lane needs few claims."""
THOUSAND = 1_000
"""A rate is in requests per this many seconds."""

# The clock is read once: a rate that ends before the wait would look like a pause of the receiver.
_PAUSE = f"""
with clock as materialized (select due_now() as now)
update lanes set rate_until = clock.now + s.pause,
  wait_until = /*sqlite max*/ /*postgres greatest*/(wait_until, clock.now + s.pause),
  due_at = /*sqlite max*/ /*postgres greatest*/(wait_until, clock.now + s.pause)
from clock, (
  select value ->> 0 as webhook, cast(value ->> 1 as bigint) as pause from {ITEMS}) as s
where lanes.webhook_id = s.webhook
"""

COLUMNS = "concurrency, rate"
"""The columns of `lanes` with the limits; null for none."""


class Lane(Protocol):
    """A due, locked lane: its limits, the rest of its window, and the number that was claimed."""

    webhook_id: str
    concurrency: int | None
    rate: int | None
    open_for: int
    rate_open: int
    window: int
    got: int


def at_once(rate: int) -> int:
    """Return how many requests one claim may take at this rate."""
    return max(rate // THOUSAND // AT_ONCE_SHARE, 1)


def pause(rate: int, count: int) -> int:
    """Return the microseconds that a lane waits after a claim of `count`.

    Claims take several at once, so each takes a little longer: no second has more than the rate.
    """
    per_second = rate / THOUSAND - (at_once(rate) - 1)
    return -int(-count * SECOND // per_second)


async def narrow(tx: Tx, lanes: Iterable[Lane]) -> None:
    """Narrow the windows of locked lanes to what their limits leave."""
    counted: list[Lane] = []
    for lane in lanes:
        if lane.rate is not None:
            # Below zero the lane pauses for its receiver, or for its rate.
            free = lane.open_for >= 0 or lane.rate_open >= 0
            lane.window = min(lane.window, at_once(lane.rate)) if free else 0
        if lane.concurrency is not None and lane.window > 0:
            counted.append(lane)
    if not counted:
        return
    rows = await tx.all(lanes_of.IN_FLIGHT, items(sorted(lane.webhook_id for lane in counted)))
    in_flight = _counts(rows)
    for lane in counted:
        assert lane.concurrency is not None
        rest = lane.concurrency - in_flight.get(lane.webhook_id, 0)
        lane.window = max(min(lane.window, rest), 0)


async def hold(tx: Tx, lanes: Iterable[Lane]) -> None:
    """Let the lanes with a rate wait for what was claimed."""
    pauses = [
        (lane.webhook_id, pause(lane.rate, lane.got))
        for lane in lanes
        if lane.rate is not None and lane.got
    ]
    if pauses:
        await tx.run(_PAUSE, items(pauses))


def _counts(rows: Iterable[Row]) -> dict[str, int]:
    return {row["webhook_id"]: int(row["n"]) for row in rows}
