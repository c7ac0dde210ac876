"""The transactions of one cycle of the drain: settle, claim and fan-out."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from outbox.database.transaction import Tx, brief
from outbox.queue.drain.budget import CLAIM, SETTLE
from outbox.queue.drain.claim import Taken, claim
from outbox.queue.drain.fanout import FannedOut, fan_out
from outbox.queue.drain.settle import Settlement, settle
from outbox.queue.state import lanes
from outbox.queue.state.claimed_deliveries import (
    FAILING_WINDOW,
    FIRST_WINDOW,
    Capacity,
    Claimed,
    Result,
)
from outbox.queue.state.fair_shares import ClaimSlots, Shares

BESIDE_FAN_OUT = 64
"""Claims in a unit that also fans out, and how much it may have done before it claims again."""
# One query: a poll that finds nothing does nothing else.
LOOK = f"""
select exists (select 1 from events where seq is null) or exists (select 1 from remainders)
  or exists (select 1 from wakes) as work,
  ({lanes.SOONEST}) as due_at, (select due_now()) as now
"""
LEAST_CLAIMS = 16
"""Claims in a unit that also fans out and has recorded many results."""


@brief
async def look(tx: Tx) -> tuple[bool, int | None]:
    """Return whether there is work for a turn, else the microseconds until a lane is due.

    None when no lane has a delivery that waits.
    """
    row = await tx.one(LOOK, True)
    assert row is not None
    wait_us = None if row["due_at"] is None else int(row["due_at"]) - int(row["now"])
    return bool(row["work"]) or (wait_us is not None and wait_us <= 0), wait_us


@brief
async def take(tx: Tx, capacity: Capacity) -> tuple[FannedOut, list[Taken]]:
    """Claim due deliveries and fan out new events, in one transaction."""
    return await _take(tx, capacity, 0)


@brief
async def settle_and_take(
    tx: Tx, batch: Sequence[Result], capacity: Capacity, look: bool
) -> tuple[Settlement, FannedOut | None, list[Taken]]:
    """Record results, then `take` in the same transaction if that may find something.

    It may with `look`, or when one of the lanes of the results is due.
    """
    settlement = await settle(tx, batch)
    if not look and (settlement.wait_us is None or settlement.wait_us > 0):
        return settlement, None, []
    return settlement, *await _take(tx, capacity, len(batch))


async def _take(tx: Tx, capacity: Capacity, settled: int) -> tuple[FannedOut, list[Taken]]:
    """Claim and fan out, less of it in a unit that has `settled` so many results.

    The first claim empties lanes, so that fan-out may claim at once what it creates for them: a
    delivery that is ready in between costs a third more. The second claim takes what fan-out must
    not claim, such as large bodies.
    """
    wait_us = await lanes.soonest(tx, True)
    first = Taken(wait_us=wait_us)
    if wait_us is not None and wait_us <= 0:
        first = await claim(tx, capacity, {}, max(BESIDE_FAN_OUT - settled, LEAST_CLAIMS))
    rest = _without(capacity, first)
    fanned = await fan_out(tx, rest, CLAIM * len(first.claimed) + SETTLE * settled)
    if not has_room(rest, fanned):
        return fanned, [replace(first, crowded=True) if fanned.ready else first]
    if len(first.claimed) + sum(fanned.created.values()) >= BESIDE_FAN_OUT:
        # This unit has done enough; the next one claims.
        return fanned, [replace(first, more=True)]
    rest = replace(rest, shares=_with(rest.shares, fanned.claimed))
    return fanned, [first, await claim(tx, rest, fanned.preclaimed())]


@brief
async def claim_due(tx: Tx, capacity: Capacity) -> Taken:
    """Claim due deliveries, after a fan-out in its own transaction."""
    return await claim(tx, capacity, {})


@brief
async def settle_and_look(
    tx: Tx, batch: Sequence[Result], capacity: Capacity, look: bool, fan: bool
) -> tuple[Settlement, FannedOut | None, Taken | None, bool]:
    """Record results, then with `fan` fan out, else claim, in one transaction.

    It claims with `look`, or when one of the lanes of the results is due. The claim waits for no
    lock, so that it cannot cause a deadlock with the locks of settle. The last value tells whether
    a claim in a transaction of its own may find something.
    """
    settlement = await settle(tx, batch)
    look = look or (settlement.wait_us is not None and settlement.wait_us <= 0)
    if fan:
        fanned, due = await fan_out_and_look(tx, capacity)
        return settlement, fanned, None, look or due
    return settlement, None, await claim(tx, capacity, {}) if look else None, False


@brief
async def fan_out_and_look(tx: Tx, capacity: Capacity) -> tuple[FannedOut, bool]:
    """Fan out new events; return also whether a claim may find something."""
    wait_us = await lanes.soonest(tx, True)
    fanned = await fan_out(tx, capacity)
    due = wait_us is not None and wait_us <= 0
    return fanned, due or fanned.turned_away or has_room(capacity, fanned)


def _without(capacity: Capacity, claims: Taken) -> Capacity:
    """Return what is left of `capacity` after a claim."""
    if not claims.claimed:
        return capacity
    counts = Counter(delivery.webhook_id for delivery in claims.claimed)
    failing = {w for w, endpoint in claims.endpoints.items() if endpoint.failures}
    spent = sum(counts[webhook_id] for webhook_id in failing)
    windows = {
        w: capacity.windows.get(w, FAILING_WINDOW if w in failing else FIRST_WINDOW) - count
        for w, count in counts.items()
    }
    return replace(
        capacity,
        slots=max(capacity.slots - len(claims.claimed), 0),
        failing_slots=max(capacity.failing_slots - spent, 0),
        failing_first=max(capacity.failing_first - spent, 0),
        windows=ChainMap(windows, cast(dict[str, int], capacity.windows)),
        body_bytes=max(
            capacity.body_bytes - sum(len(d.event.body or b"") for d in claims.claimed), 0
        ),
        shares=_with(capacity.shares, claims.claimed, max(len(claims.claimed) - capacity.slots, 0)),
    )


def _with(shares: Shares, claimed: Sequence[Claimed], further: int = 0) -> Shares:
    """Return `shares` after this claim, which used `further` of the further places."""
    if not claimed:
        return shares
    added = Counter(shares.added)
    added.update(delivery.owner_id for delivery in claimed)
    return replace(shares, added=added, further=shares.further - further)


def has_room(capacity: Capacity, fanned: FannedOut) -> bool:
    """Return whether there is room for a delivery that fan-out has not claimed."""
    if not fanned.ready:
        return False
    counts = fanned.preclaimed()
    slots = capacity.slots - counts.total()
    shares = _with(capacity.shares, fanned.claimed)
    places = ClaimSlots(max(slots, 0), shares.further + min(slots, 0), shares)
    return any(
        counts[webhook_id] < capacity.windows.get(webhook_id, FIRST_WINDOW)
        and places.open_to(owner_id)
        for webhook_id, owner_id in fanned.ready.items()
    )
