"""Tell what unfinished deliveries wait for, and until when.

A delivery is due by its own schedule, but its webhook may hold it: by a pause that its receiver
asked for, by a limit of its owner, by an open circuit. A page of deliveries costs three statements
at most, however many deliveries and webhooks it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from outbox.database.sql import IDS, items
from outbox.database.transaction import Row, Tx
from outbox.durations import DAY
from outbox.queue.state import lanes
from outbox.states import WaitReason

LONGEST = 366 * DAY
"""Nothing that a delivery waits for lasts as long; a lane that does is between two databases."""
LANES = f"""
select l.webhook_id, w.state, w.unreadable, l.concurrency, l.wait_until - due_now() as wait_in,
  l.rate_until - l.wait_until as rate_more, l.probe_at - due_now() as probe_in
from lanes l join webhooks w on w.id = l.webhook_id where l.webhook_id in {IDS}
"""
PASSES = f"select delivery_id, pauses from passes where delivery_id in {IDS}"


class Delivery(Protocol):
    """A delivery, and microseconds to its next attempt by its own schedule."""

    @property
    def id(self) -> str: ...
    @property
    def webhook_id(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def due_in(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a delivery or a webhook waits for; `until` is microseconds UTC, None if nobody knows."""

    reason: WaitReason
    until: int | None = None


@dataclass(frozen=True, slots=True)
class _Hold:
    """A reason to wait, and microseconds until it is over."""

    reason: WaitReason
    left: int


async def of(tx: Tx, deliveries: Iterable[Delivery]) -> Mapping[str, Waiting]:
    """Return what each of these deliveries waits for; one that nothing holds is left out."""
    unfinished = [one for one in deliveries if one.state in ("ready", "held")]
    ready = [one for one in unfinished if one.state == "ready"]
    waits = {one.id: Waiting("earlier_delivery") for one in unfinished if one.state == "held"}
    if not ready:
        return waits
    holding = await _lanes(tx, {one.webhook_id for one in ready})
    passes: dict[str, bool] = {}
    if any(_may_be_passed(lane) for lane in holding.values()):
        rows = await tx.all(PASSES, items(sorted(one.id for one in ready)))
        passes = {row["delivery_id"]: bool(row["pauses"]) for row in rows}
    counts = await _in_flight(tx, holding)
    for one in ready:
        lane = holding.get(one.webhook_id)
        if lane is None:
            continue
        holds = _holds(lane, one.id in passes, passes.get(one.id, False))
        if one.due_in > 0:
            holds.append(_Hold("schedule", one.due_in))
        found = _judged(tx, lane, holds, counts)
        if found is not None:
            waits[one.id] = found
    return waits


async def of_webhooks(tx: Tx, webhook_ids: Sequence[str]) -> Mapping[str, Waiting]:
    """Return what holds all deliveries of these webhooks; one that nothing holds is left out."""
    holding = await _lanes(tx, webhook_ids)
    counts = await _in_flight(tx, holding)
    found = {one: _judged(tx, lane, _holds(lane), counts) for one, lane in holding.items()}
    return {one: waiting for one, waiting in found.items() if waiting is not None}


async def limit_of(tx: Tx, webhook_id: str) -> Waiting | None:
    """Return the limit of its owner that holds a webhook now; None when none does."""
    holding = await _lanes(tx, [webhook_id])
    counts = await _in_flight(tx, holding)
    lane = holding.get(webhook_id)
    if lane is None:
        return None
    return _judged(tx, lane, _holds(lane, passes=True, pauses=True), counts)


async def _lanes(tx: Tx, webhook_ids: Iterable[str]) -> Mapping[str, Row]:
    ids = sorted(set(webhook_ids))
    return {row["webhook_id"]: row for row in await tx.all(LANES, items(ids))} if ids else {}


async def _in_flight(tx: Tx, holding: Mapping[str, Row]) -> Mapping[str, int]:
    """Return the requests in flight of the webhooks with a limit of these."""
    limited = sorted(one for one, lane in holding.items() if lane["concurrency"] is not None)
    rows = await tx.all(lanes.IN_FLIGHT, items(limited)) if limited else []
    return {row["webhook_id"]: int(row["n"]) for row in rows}


def _may_be_passed(lane: Row) -> bool:
    return lane["state"] == "active" and (lane["probe_in"] is not None or lane["wait_in"] > 0)


def _holds(lane: Row, passes: bool = False, pauses: bool = False) -> list[_Hold]:
    """Return what holds a webhook; what a delivery passes does not hold it."""
    holds = []
    wait = int(lane["wait_in"])
    # The rate holds as long as all else, or for a part of that.
    more = min(int(lane["rate_more"]), 0)
    if wait + more > 0:
        holds.append(_Hold("rate_limit", wait + more))
    if wait > 0 > more and lane["unreadable"] is not None:
        holds.append(_Hold("unreadable", wait))
    elif wait > 0 > more and not pauses:
        holds.append(_Hold("retry_after", wait))
    if lane["probe_in"] is not None and not passes:
        holds.append(_Hold("circuit_open", max(int(lane["probe_in"]), 0)))
    return [hold for hold in holds if hold.left < LONGEST]


def _judged(tx: Tx, lane: Row, holds: Sequence[_Hold], counts: Mapping[str, int]) -> Waiting | None:
    """Return the hold that ends last; without one, the limit of requests at once, if it is full."""
    if lane["state"] != "active":
        return Waiting("paused" if lane["state"] == "paused" else "disabled")
    if holds:
        last = max(holds, key=lambda hold: hold.left)
        return Waiting(last.reason, tx.now + last.left)
    limit = lane["concurrency"]
    if limit is not None and counts.get(lane["webhook_id"], 0) >= limit:
        return Waiting("concurrency_limit")
    return None
