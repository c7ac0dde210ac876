"""A standby takes over under load (R31): acknowledged writes exist, and service continues.

With an asynchronous standby a part of the history is lost: the run counts and names it, and the
nodes clear its remains.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from tests.support.fleet import Fleet, Spell, fleet
from tests.support.ledger import Pair, Verdict, query, until_drained
from tests.support.recipients import Receipt
from tests.system.nodes import WARM_WRITES
from tests.system.nodes_judged import DRAIN_SECONDS, judged

BACK_SECONDS = 5.0
PATIENCE = 30.0
BEHIND_SECONDS = 1.5
"""Seconds by which an asynchronous standby is behind when the primary dies."""
UNDER_WAY_SECONDS = 2.0
"""Results within this time before the standby fell behind may be missing on it."""
START_SECONDS = 1.0
"""Deliveries claimed at the primary's death were sent within this time."""
EVENTS = "select id, request_id from events"


async def run_synchronous(seed: int) -> dict[str, Any]:
    """Kill the primary, and promote the standby that every commit waits for."""
    async with fleet(seed, follower="synchronous") as site:
        async with site.writing():
            await site.writes(WARM_WRITES, 2 * WARM_WRITES)
            back = await _fail_over(site)
            await site.writes(2 * WARM_WRITES, 2 * WARM_WRITES)

        def more(verdict: Verdict) -> None:
            _served(verdict, back)

        return await judged("synchronous failover", site, unknown_allowed=True, more=more)


async def run_asynchronous(seed: int) -> dict[str, Any]:
    """Kill the primary while the standby is behind; name the lost part."""
    async with fleet(seed, follower="asynchronous") as site:
        assert site.standby is not None
        async with site.writing():
            await site.writes(WARM_WRITES, 2 * WARM_WRITES)
            behind = time.monotonic()
            await site.standby.detach()
            await asyncio.sleep(BEHIND_SECONDS)
            back = await _fail_over(site)
            await site.writes(2 * WARM_WRITES, 2 * WARM_WRITES)
        # Deliveries under the name of a node that lost it are sent a minute later.
        await until_drained(site.url, DRAIN_SECONDS)
        gone = await _forget(site, behind, site.spells[-1].start)
        site.in_flight.append(dict.fromkeys(gone.repeated, ""))

        def more(verdict: Verdict) -> None:
            _served(verdict, back)
            verdict.find(not gone.writes, "nothing was lost: the standby was not behind")
            verdict.figures |= {
                "never_had": len(gone.writes),
                "never_had_named": gone.writes[:5],
                "sent_of_these": len(site.there.got) - len(gone.got),
            }

        return await judged(
            "asynchronous failover", site,
            unknown_allowed=True, got=gone.got, rewound=gone.repeated, more=more,
        )  # fmt: skip


@dataclass
class _Gone:
    """The part of the history that the standby never had."""

    writes: list[str] = field(default_factory=list)
    got: list[Receipt] = field(default_factory=list)
    """The received requests, without lost events."""
    repeated: set[Pair] = field(default_factory=set)
    """Deliveries sent by then, or in flight: they may arrive again."""


async def _forget(site: Fleet, behind: float, killed: float) -> _Gone:
    """Count the lost part, and remove it from the ledger's expectations."""
    events = await query(site.url, EVENTS)
    ids, requests = {event for event, _ in events}, {request for _, request in events}
    gone, load = _Gone(), site.load
    for request in [r for r in load.acked if r not in requests and load.acked_at[r] >= behind]:
        gone.writes.append(request)
        # As if its write had never been requested.
        del load.acked[request]
    for receipt in site.there.got:
        if receipt.event_id in ids or receipt.at < behind:
            gone.got.append(receipt)
            if behind - UNDER_WAY_SECONDS < receipt.at < killed + START_SECONDS:
                gone.repeated.add((receipt.event_id, load.tenants.paths[receipt.path]))
    return gone


async def _fail_over(site: Fleet) -> float:
    """Kill the primary, promote the standby; return the slowest node's seconds until it serves."""
    assert site.standby is not None
    at = time.monotonic()
    await site.cluster.kill()
    await site.standby.promote()
    promoted = time.monotonic()
    back = await asyncio.gather(
        *(site.until_acked(node, promoted, PATIENCE) for node in site.nodes)
    )
    webhooks = frozenset(site.load.tenants.paths.values())
    site.spells.append(Spell(at, time.monotonic(), webhooks))
    return max(back)


def _served(verdict: Verdict, back: float) -> None:
    verdict.find(back > BACK_SECONDS, f"service took {back:.1f} s after the promotion")
    verdict.figures["back_s"] = round(back, 2)
