"""A COMMIT that waits for a synchronous standby, and the end of the wait (R30).

The standby stops streaming; writes wait in COMMIT; the wait ends; the standby takes over. Writes
answered 201 exist, whatever ended the wait; all others were answered 503 in time.
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import aiohttp

from tests.support.fleet import Fleet, fleet
from tests.support.ledger import Verdict, query
from tests.support.waiting import in_time
from tests.system.nodes_judged import HUNG_SECONDS

Way = Literal["timeout", "cancel", "terminate", "crash"]
WAYS: tuple[Way, ...] = ("timeout", "cancel", "terminate", "crash")
FIRST_WRITES = 5
WAIT_SECONDS = 5.0
AGAIN_SECONDS = 0.2
WAITING = "from pg_stat_activity where wait_event = 'SyncRep' and application_name = 'carteiro'"
CANCEL = f"select pg_cancel_backend(pid) {WAITING}"
TERMINATE = f"select pg_terminate_backend(pid) {WAITING}"
EVENTS = "select id, request_id from events"


async def run_standby_wait(
    way: Way, count: int, seed: int, *, module: str = "gateway"
) -> dict[str, Any]:
    """Let `count` writes wait at once, and end their wait in one way; return the record.

    `module` is another entry point in place of the product: the negative control.
    """
    pool = {"CARTEIRO_DATABASE__POOL_SIZE": str(2 * count)}
    async with fleet(seed, 1, follower="synchronous", module=module, environment=pool) as site:
        waited = await _wait_in_commit(site, way, count)
        running = site.nodes[0].product.running
        assert site.standby is not None
        await site.cluster.kill()
        await site.standby.promote()
        rows = await query(site.url, EVENTS)
    load = site.load
    events, requests = {event for event, _ in rows}, {request for _, request in rows}
    late = max(answer.seconds for answer in load.answers)
    wrong = [refused for refused in load.refused.values() if not refused.unavailable]
    verdict = Verdict(f"standby wait ended by {way}", seed, acks=len(load.acked), rows=len(rows))
    verdict.lost = verdict.find(
        len(load.acked.keys() - requests), "writes answered 201 that the new primary has not"
    )
    verdict.unexpected = verdict.find(
        len({receipt.event_id for receipt in site.there.got} - events),
        "events that were sent and that the new primary has not",
    )
    verdict.find(waited < count, f"only {waited} COMMITs waited")
    verdict.find(len(load.broken), f"writes without an answer: {set(load.broken.values())}")
    verdict.find(len(wrong), f"refusals other than a good 503: {wrong[:3]}")
    verdict.find(late > HUNG_SECONDS, f"an answer took {late:.1f} s")
    verdict.find(not running, "the product ended")
    verdict.figures |= {
        "waited": waited,
        "said_201": len(load.acked) - FIRST_WRITES,
        "said_503": len(load.refused) - len(wrong),
        "slowest_answer_s": round(late, 2),
    }
    return verdict.told()


async def _wait_in_commit(site: Fleet, way: Way, count: int) -> int:
    """Commit some writes, then let `count` wait until their wait is ended; return how many did."""
    [node], load = site.nodes, site.load
    address = node.product.address
    assert site.standby is not None
    async with aiohttp.ClientSession(address) as http:
        for _ in range(FIRST_WRITES):
            await load.answered(http, address)
        assert len(load.acked) == FIRST_WRITES, load.refused
        await site.standby.detach()
        before = await _waiting(site)
        writes = [asyncio.create_task(load.answered(http, address)) for _ in range(count)]

        waited: set[int] = set()

        async def all_wait() -> bool:
            waited.update(await _waiting(site) - before)
            return len(waited) >= count

        await in_time(all_wait, WAIT_SECONDS)
        if way == "crash":
            await site.cluster.crash()
            await site.cluster.start()
        statement = {"cancel": CANCEL, "terminate": TERMINATE}.get(way)
        while statement and not all(write.done() for write in writes):
            # Repeated for waits that start again, as a person would do.
            await site.cluster.run(statement)
            await asyncio.wait(writes, timeout=AGAIN_SECONDS)
        await asyncio.gather(*writes)
    return len(waited)


async def _waiting(site: Fleet) -> set[int]:
    """Return the backends whose COMMIT waits for the standby now."""
    # On the primary: the address of both leads elsewhere once it has stopped.
    return {pid for (pid,) in await query(site.cluster.url, f"select pid {WAITING}")}
