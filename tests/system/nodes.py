"""Several nodes on one PostgreSQL server while one of them fails (R10, R12, R13, R32).

Each run is a fault under load, then the ledger: responses × rows × requests.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Set
from typing import Any

from tests.support.fleet import Fleet, Node, Spell, fleet
from tests.support.ledger import Held, Verdict, held, newly, query
from tests.support.waiting import in_time
from tests.system.nodes_judged import (
    DRAIN_SECONDS,
    LEASE_SECONDS,
    TAKEOVER_SECONDS,
    judged,
    uneven,
)

WARM_WRITES = 60
SHORT_SECONDS = (0.5, 1.5)
STUCK_SECONDS = (5.5, 7.0)
"""Seconds of a short fault that met an open transaction: longer than others may wait."""
BETWEEN_SECONDS = (0.3, 1.2)
BACK_SECONDS = 15.0
BUSY_RATE = 400.0
LATE = "select event_id, webhook_id from attempts where node_id = any('{{{}}}')"


async def run_shares(seconds: float, seed: int) -> dict[str, Any]:
    """Run two nodes without a fault: both deliver, though all writes go to one of them.

    A node with little to do delivers what it has stored itself, so one is kept busy.
    """
    async with fleet(seed, 2) as site:
        async with site.load.writing_to([site.nodes[0].product.address], rate=BUSY_RATE):
            await asyncio.sleep(seconds)

        def more(verdict: Verdict) -> None:
            small = uneven(site)
            verdict.find(len(small), f"nodes with too small a part: {', '.join(small)}")

        return await judged("2 nodes share", site, more=more)


async def run_node_kills(rounds: int, seed: int, **draft: Any) -> dict[str, Any]:
    """SIGKILL a random node and restart it, `rounds` times; `draft` are settings of webhooks."""
    async with fleet(seed, draft=draft) as site:
        async with site.writing():
            await site.writes(WARM_WRITES, 2 * WARM_WRITES)
            for _ in range(rounds):
                await site.seconds(*BETWEEN_SECONDS)
                node = site.dice.choice(site.nodes)
                at = node.product.kill()
                await node.product.ended()
                met = newly(await site.held_by(node), site.in_flight)
                _note(site, node, met, at, at + TAKEOVER_SECONDS)
                await node.product.start()
            await site.writes(WARM_WRITES, WARM_WRITES)

        def more(verdict: Verdict) -> None:
            slots = sum(map(len, site.in_flight))
            verdict.find(verdict.duplicated > slots, "more duplicates than were in flight")
            verdict.find(not slots, "no kill met a send")

        return await judged(f"{rounds} kills of a node", site, broken_allowed=True, more=more)


async def run_long_freeze(seed: int, *, module: str = "gateway") -> dict[str, Any]:
    """Freeze a node past its lease during an attempt: others take over, it is fenced.

    `module` is another entry point in place of the product: the negative control.
    """
    async with fleet(seed, module=module) as site:
        node = site.dice.choice(site.nodes)
        async with site.writing():
            await site.writes(WARM_WRITES, 2 * WARM_WRITES)
            await in_time(lambda: _busy(site, node), BACK_SECONDS)
            at = site.freeze(node)
            met = await site.held_by(node)
            before = await site.ids_of(node)
            taken_over = await taken_over_after(site, met, at)
            await asyncio.sleep(max(at + TAKEOVER_SECONDS - time.monotonic(), 0.0))
            thawed = site.thaw(node)
            back = await site.until_acked(node, thawed, BACK_SECONDS)
            _note(site, node, met, at, time.monotonic())
            await site.writes(WARM_WRITES, WARM_WRITES)
        late = await _late(site, met, before)

        def more(verdict: Verdict) -> None:
            verdict.find(not met, "nothing was under way when it was frozen")
            verdict.find(late, "late settlings that changed something")
            verdict.figures["late"] = late
            _timely(verdict, taken_over, back)

        return await judged("freeze past the lease", site, broken_allowed=True, more=more)


async def run_short_freezes(rounds: int, seed: int) -> dict[str, Any]:
    """Freeze a random node for some seconds at a random moment, `rounds` times."""
    stuck = 0
    async with fleet(seed) as site:
        async with site.writing():
            await site.writes(WARM_WRITES, 2 * WARM_WRITES)
            for _ in range(rounds):
                await site.seconds(*BETWEEN_SECONDS)
                node = site.dice.choice(site.nodes)
                at = site.freeze(node)
                met = await site.held_by(node)
                stuck += await _last(site, node)
                site.spells.append(_spell(node, met, at, site.thaw(node)))
            await site.writes(WARM_WRITES, WARM_WRITES)

        def more(verdict: Verdict) -> None:
            verdict.figures["in_transaction"] = stuck

        return await judged(f"{rounds} short freezes", site, broken_allowed=True, more=more)


async def run_black_hole(seconds: float, seed: int) -> dict[str, Any]:
    """Cut a node from PostgreSQL for longer than its lease, without closing connections."""
    async with fleet(seed, dark=1) as site:
        node = site.nodes[0]
        assert node.hole is not None
        async with site.writing():
            await site.writes(WARM_WRITES, 2 * WARM_WRITES)
            await in_time(lambda: _busy(site, node), BACK_SECONDS)
            node.hole.darken()
            at = time.monotonic()
            met = await site.held_by(node)
            before = await site.ids_of(node)
            taken_over = await taken_over_after(site, met, at)
            await asyncio.sleep(max(at + seconds - time.monotonic(), 0.0))
            node.hole.lighten()
            lit = time.monotonic()
            back = await site.until_acked(node, lit, BACK_SECONDS)
            # Slow requests of this node count as slow: it is disconnected, not frozen.
            site.in_flight.append(met)
            site.spells.append(Spell(at, time.monotonic(), _webhooks(met)))
            await site.writes(WARM_WRITES, WARM_WRITES)
        late = await _late(site, met, before)
        sent = [r.at - at for r in site.there.got if r.agent == node.agent and at < r.at < lit]

        def more(verdict: Verdict) -> None:
            last = max(sent, default=0.0)
            verdict.find(last > LEASE_SECONDS, f"it sent for {last:.1f} s after it was cut off")
            verdict.find(late, "late settlings that changed something")
            verdict.find(not met, "nothing was under way when it was cut off")
            _timely(verdict, taken_over, back)
            verdict.figures["sent_for_s"] = round(last, 1)

        return await judged(f"black hole of {seconds:.0f} s", site, unknown_allowed=True, more=more)


async def run_short_holes(rounds: int, seed: int) -> dict[str, Any]:
    """Cut a random node from PostgreSQL for some seconds at a random moment, `rounds` times."""
    stuck = 0
    async with fleet(seed, dark=4) as site:
        async with site.writing():
            await site.writes(WARM_WRITES, 2 * WARM_WRITES)
            for _ in range(rounds):
                await site.seconds(*BETWEEN_SECONDS)
                node = site.dice.choice(site.nodes)
                assert node.hole is not None
                node.hole.darken()
                at = time.monotonic()
                met = await site.held_by(node)
                stuck += await _last(site, node)
                node.hole.lighten()
                site.spells.append(Spell(at, time.monotonic(), _webhooks(met)))
            await site.writes(WARM_WRITES, WARM_WRITES)

        def more(verdict: Verdict) -> None:
            verdict.figures["in_transaction"] = stuck

        return await judged(f"{rounds} short black holes", site, unknown_allowed=True, more=more)


async def _last(site: Fleet, node: Node) -> bool:
    """Return the length of a short fault, and whether it met an open transaction."""
    stuck = await site.in_transaction(node)
    await site.seconds(*(STUCK_SECONDS if stuck else SHORT_SECONDS))
    return stuck


async def _busy(site: Fleet, node: Node) -> bool:
    return site.busy(node)


def _spell(node: Node, met: Held, start: float, end: float) -> Spell:
    return Spell(start, end, _webhooks(met), node.product.address)


def _webhooks(met: Held) -> frozenset[str]:
    return frozenset(webhook for _, webhook in met)


def _note(site: Fleet, node: Node, met: Held, start: float, end: float) -> None:
    """Record a fault after which others may send its deliveries again."""
    site.in_flight.append(met)
    site.spells.append(_spell(node, met, start, end))


async def taken_over_after(site: Fleet, met: Held, at: float) -> float:
    """Return the seconds from `at` until no claim of `met` is left."""
    claims = set(met.values())

    async def free() -> bool:
        return not claims & set((await held(site.url)).values())

    await in_time(free, DRAIN_SECONDS)
    return time.monotonic() - at


async def _late(site: Fleet, met: Held, ids: Set[str]) -> int:
    """Return attempts recorded under an expired name after the loss of their claims."""
    written = await query(site.url, LATE.format(",".join(sorted(ids))))
    return sum((event, webhook) in met for event, webhook in written)


def _timely(verdict: Verdict, taken_over: float, back: float) -> None:
    verdict.find(taken_over > TAKEOVER_SECONDS, f"taken over only after {taken_over:.1f} s")
    verdict.find(back >= BACK_SECONDS, "the node did not come back")
    verdict.figures |= {"taken_over_s": round(taken_over, 1), "back_s": round(back, 2)}
