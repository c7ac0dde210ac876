"""A standby takes over under load (R31): what was acknowledged is there, and service goes on.

With an asynchronous standby a piece of history is lost: it is counted and named, and what it leaves
behind in the nodes is cleared away.
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
"""How far an asynchronous standby is behind when the primary dies."""
UNDER_WAY_SECONDS = 2.0
"""What was settled so shortly before the standby fell behind may have been written after it."""
START_SECONDS = 1.0
"""What had been claimed by the primary's death was sent so soon after it."""
EVENTS = "select id, request_id from events"


async def run_synchronous(seed: int) -> dict[str, Any]:
    """The primary dies, the standby without which nothing commits is promoted."""
    async with fleet(seed, follower="synchronous") as site:
        async with site.writing():
            await site.writes(WARM_WRITES, 2 * WARM_WRITES)
            back = await _fail_over(site)
            await site.writes(2 * WARM_WRITES, 2 * WARM_WRITES)

        def more(verdict: Verdict) -> None:
            _served(verdict, back)

        return await judged("synchronous failover", site, unknown_allowed=True, more=more)


async def run_asynchronous(seed: int) -> dict[str, Any]:
    """The primary dies when the standby is behind; what that never had is named."""
    async with fleet(seed, follower="asynchronous") as site:
        assert site.standby is not None
        async with site.writing():
            await site.writes(WARM_WRITES, 2 * WARM_WRITES)
            behind = time.monotonic()
            await site.standby.detach()
            await asyncio.sleep(BEHIND_SECONDS)
            back = await _fail_over(site)
            await site.writes(2 * WARM_WRITES, 2 * WARM_WRITES)
        # What stood under the name of a node that had lost it is sent a minute later.
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
    """The piece of history that the standby never had."""

    writes: list[str] = field(default_factory=list)
    got: list[Receipt] = field(default_factory=list)
    """What was received, without the events that are gone."""
    repeated: set[Pair] = field(default_factory=set)
    """What had been sent by then, or was under way: it may come again."""


async def _forget(site: Fleet, behind: float, killed: float) -> _Gone:
    """Tell what the standby never had, and take it out of what the ledger asks for."""
    events = await query(site.url, EVENTS)
    ids, requests = {event for event, _ in events}, {request for _, request in events}
    gone, load = _Gone(), site.load
    for request in [r for r in load.acked if r not in requests and load.acked_at[r] >= behind]:
        gone.writes.append(request)
        # It is as if nobody had ever asked for it.
        del load.acked[request]
    for receipt in site.there.got:
        if receipt.event_id in ids or receipt.at < behind:
            gone.got.append(receipt)
            if behind - UNDER_WAY_SECONDS < receipt.at < killed + START_SECONDS:
                gone.repeated.add((receipt.event_id, load.tenants.paths[receipt.path]))
    return gone


async def _fail_over(site: Fleet) -> float:
    """Kill the primary, promote the standby; the slowest node's seconds until it serves again."""
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
