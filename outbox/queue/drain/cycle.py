"""The transactions of one turn of the drain, made of settle, claim and fan-out."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from outbox.database.transaction import Tx
from outbox.queue.drain.budget import CLAIM
from outbox.queue.drain.claim import Taken, claim
from outbox.queue.drain.fanout import FannedOut, fan_out
from outbox.queue.drain.settle import Settlement, settle
from outbox.queue.state import lanes
from outbox.queue.state.deliveries import FAILING_WINDOW, FIRST_WINDOW, Capacity, Claimed, Result
from outbox.queue.state.fair_shares import Places, Shares

BESIDE_FAN_OUT = 64
"""Claims in a unit that also fans out, and how much it may have done before it claims again."""


async def take(tx: Tx, capacity: Capacity) -> tuple[FannedOut, list[Taken]]:
    """Claim due deliveries and fan out new events, in one transaction.

    First the claim, which empties lanes, so that fan-out may claim for them what it creates: a
    delivery that is ready in between costs a third more. The second claim takes what fan-out must
    not claim, such as large bodies.
    """
    taken = await claim(tx, capacity, {}, BESIDE_FAN_OUT)
    rest = _without(capacity, taken)
    fanned = await fan_out(tx, rest, CLAIM * len(taken.claimed))
    if not _has_room(rest, fanned):
        return fanned, [taken]
    if len(taken.claimed) + sum(fanned.created.values()) >= BESIDE_FAN_OUT:
        # This unit has done enough; the next one claims.
        return fanned, [replace(taken, more=True)]
    rest = replace(rest, shares=_with(rest.shares, fanned.claimed))
    return fanned, [taken, await claim(tx, rest, fanned.preclaimed())]


async def claim_due(tx: Tx, capacity: Capacity) -> Taken:
    """Claim due deliveries, after a fan-out in its own transaction."""
    return await claim(tx, capacity, {})


async def settle_and_claim(
    tx: Tx, batch: Sequence[Result], capacity: Capacity
) -> tuple[Settlement, Taken]:
    """Record results, then claim due deliveries, in one transaction.

    Nothing in the claim waits for a lock, so that its locks come after those of settle without
    a deadlock.
    """
    return await settle(tx, batch), await claim(tx, capacity, {})


async def fan_out_and_look(tx: Tx, capacity: Capacity) -> tuple[FannedOut, bool]:
    """Fan out new events; return also whether a claim may find something."""
    wait_us = await lanes.soonest(tx, True)
    fanned = await fan_out(tx, capacity)
    due = wait_us is not None and wait_us <= 0
    return fanned, due or fanned.turned_away or _has_room(capacity, fanned)


def _without(capacity: Capacity, taken: Taken) -> Capacity:
    """Return what is left of `capacity` after a claim."""
    counts = Counter(delivery.webhook_id for delivery in taken.claimed)
    failing = {w for w, endpoint in taken.endpoints.items() if endpoint.failures}
    spent = sum(counts[webhook_id] for webhook_id in failing)
    windows = {
        w: capacity.windows.get(w, FAILING_WINDOW if w in failing else FIRST_WINDOW) - count
        for w, count in counts.items()
    }
    return replace(
        capacity, slots=max(capacity.slots - len(taken.claimed), 0),
        failing_slots=max(capacity.failing_slots - spent, 0),
        failing_first=max(capacity.failing_first - spent, 0),
        windows=ChainMap(windows, cast(dict[str, int], capacity.windows)),
        body_bytes=max(capacity.body_bytes - sum(len(d.body or b"") for d in taken.claimed), 0),
        shares=_with(
            capacity.shares, taken.claimed, max(len(taken.claimed) - capacity.slots, 0)
        ),
    )  # fmt: skip


def _with(shares: Shares, claimed: Sequence[Claimed], further: int = 0) -> Shares:
    """Return `shares` after this claim, which used `further` of the further places."""
    added = Counter(shares.added)
    added.update(delivery.owner_id for delivery in claimed)
    return replace(shares, added=added, further=shares.further - further)


def _has_room(capacity: Capacity, fanned: FannedOut) -> bool:
    """Return whether there is room for a delivery that fan-out has not claimed."""
    counts = fanned.preclaimed()
    left = capacity.slots - counts.total()
    shares = _with(capacity.shares, fanned.claimed)
    places = Places(max(left, 0), shares.further + min(left, 0), shares)
    return any(
        counts[webhook_id] < capacity.windows.get(webhook_id, FIRST_WINDOW)
        and places.open_to(owner_id)
        for webhook_id, owner_id in fanned.ready.items()
    )
