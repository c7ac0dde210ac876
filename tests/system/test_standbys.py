"""A standby takes over, and the waits of COMMITs for it are ended (R30, R31).

Acknowledged writes exist, and service continues. With an asynchronous standby a part of the history
is lost: the run counts and names it, and the nodes clear its remains.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Literal

import aiohttp
import pytest

from tests.support.fleet import WARM_WRITES, Fleet, fleet
from tests.support.ledger import Pair, Verdict, query, until_drained
from tests.support.recipients import Receipt
from tests.support.waiting import in_time
from tests.system.test_nodes import DRAIN_SECONDS, HUNG_SECONDS, judged

SEED = 80260
BACK_SECONDS = 5.0
PATIENCE = 30.0
BEHIND_SECONDS = 1.5
"""Seconds by which an asynchronous standby is behind when the primary dies."""
UNDER_WAY_SECONDS = 2.0
"""Results within this time before the standby fell behind may be missing on it."""
START_SECONDS = 1.0
"""Deliveries claimed at the primary's death were sent within this time."""
EVENTS = "select id, request_id from events"
Way = Literal["timeout", "cancel", "terminate", "crash"]
FIRST_WRITES = 5
WAITING = "from pg_stat_activity where wait_event = 'SyncRep' and application_name = 'carteiro'"
ENDS: dict[Way, str] = {
    "cancel": f"select pg_cancel_backend(pid) {WAITING}",
    "terminate": f"select pg_terminate_backend(pid) {WAITING}",
}


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
    site.note(at)
    return max(back)


def _served(verdict: Verdict, back: float) -> None:
    verdict.find(back > BACK_SECONDS, f"service took {back:.1f} s after the promotion")
    verdict.figures["back_s"] = round(back, 2)


async def test_a_synchronous_standby_takes_over() -> None:
    async with fleet(SEED, follower="synchronous") as site:
        async with site.busy(2 * WARM_WRITES):
            back = await _fail_over(site)
        verdict = await judged("synchronous failover", site, unknown_allowed=True)
    _served(verdict, back)
    verdict.must_hold()


async def test_an_asynchronous_standby_takes_over() -> None:
    """It is behind when the primary is killed."""
    async with fleet(SEED, follower="asynchronous") as site:
        assert site.standby is not None
        async with site.busy(2 * WARM_WRITES):
            behind = time.monotonic()
            await site.standby.detach()
            await asyncio.sleep(BEHIND_SECONDS)
            back = await _fail_over(site)
        # Deliveries under the name of a node that lost it are sent a minute later.
        await until_drained(site.url, DRAIN_SECONDS)
        gone = await _forget(site, behind, site.spells[-1].start)
        site.in_flight.append(dict.fromkeys(gone.repeated, ""))
        verdict = await judged(
            "asynchronous failover", site, unknown_allowed=True, got=gone.got,
            rewound=gone.repeated,
        )  # fmt: skip
        sent = len(site.there.got) - len(gone.got)
    _served(verdict, back)
    verdict.find(not gone.writes, "nothing was lost: the standby was not behind")
    verdict.figures |= {"never_had": len(gone.writes), "sent_of_these": sent}
    verdict.must_hold()


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
    events = await site.query(EVENTS)
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


async def run_standby_wait(way: Way, count: int, *, broken: str = "") -> Verdict:
    """Let `count` writes wait in COMMIT, end their wait in one way, and let the standby take over.

    Writes answered 201 exist, whatever ended the wait; all others were answered 503 in time.
    """
    pool = {"CARTEIRO_DATABASE__POOL_SIZE": str(2 * count)}
    async with fleet(SEED, 1, follower="synchronous", broken=broken, environment=pool) as site:
        waited = await _wait_in_commit(site, way, count)
        running = site.nodes[0].product.running
        assert site.standby is not None
        await site.cluster.kill()
        await site.standby.promote()
        rows = await site.query(EVENTS)
    load = site.load
    events, requests = {event for event, _ in rows}, {request for _, request in rows}
    late = max(answer.seconds for answer in load.answers)
    verdict = Verdict(f"standby wait ended by {way}", SEED, acks=len(load.acked), rows=len(rows))
    verdict.lost = verdict.find(
        len(load.acked.keys() - requests), "writes answered 201 that the new primary has not"
    )
    verdict.unexpected = verdict.find(
        len({receipt.event_id for receipt in site.there.got} - events),
        "events that were sent and that the new primary has not",
    )
    # Writes that arrive together share a COMMIT.
    verdict.find(not waited, "no COMMIT waited")
    verdict.find(len(load.broken), f"writes without an answer: {set(load.broken.values())}")
    verdict.find(len(load.wrong), f"refusals other than a good 503: {load.wrong[:3]}")
    verdict.find(late > HUNG_SECONDS, f"an answer took {late:.1f} s")
    verdict.find(not running, "the product ended")
    verdict.figures |= {
        "said_201": len(load.acked) - FIRST_WRITES, "said_503": len(load.refused),
        "slowest_answer_s": round(late, 2),
    }  # fmt: skip
    return verdict


async def _wait_in_commit(site: Fleet, way: Way, count: int) -> int:
    """Commit some writes, then let `count` wait until their wait is ended; return how many did."""
    [node], load = site.nodes, site.load
    address = node.product.address
    assert site.standby is not None
    async with aiohttp.ClientSession() as http:
        for _ in range(FIRST_WRITES):
            await load.write(http, address)
        assert len(load.acked) == FIRST_WRITES, load.refused
        await site.standby.detach()
        before = await _waiting(site)
        writes = [asyncio.create_task(load.write(http, address)) for _ in range(count)]
        waited: set[int] = set()

        async def all_wait() -> bool:
            waited.update(await _waiting(site) - before)
            return len(waited) >= count

        await in_time(all_wait, 5.0)
        if way == "crash":
            await site.cluster.crash()
            await site.cluster.start()
        while way in ENDS and not all(write.done() for write in writes):
            # Repeated for waits that start again, as a person would do.
            await site.cluster.run(ENDS[way])
            await asyncio.wait(writes, timeout=0.2)
        await asyncio.gather(*writes)
    return len(waited)


async def _waiting(site: Fleet) -> set[int]:
    """Return the backends whose COMMIT waits for the standby now."""
    # On the primary: the address of both leads elsewhere once it has stopped.
    return {pid for (pid,) in await query(site.cluster.url, f"select pid {WAITING}")}


@pytest.mark.parametrize("way", ["timeout", "cancel", "terminate", "crash"])
async def test_a_wait_for_the_standby_is_ended(way: Way) -> None:
    (await run_standby_wait(way, 20)).must_hold()


@pytest.mark.parametrize("way", ["cancel", "terminate", "crash"])
async def test_trusting_a_commit_whose_wait_was_ended_loses(way: Way) -> None:
    assert (await run_standby_wait(way, 5, broken="trusts_commits")).lost
