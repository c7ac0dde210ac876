"""Several nodes on one PostgreSQL, one fault of a node or of the database at a time."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Set
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from math import inf

import asyncpg
import pytest

from tests.support.faults import shows
from tests.support.fleet import Fleet, Node, Spell, fleet
from tests.support.ledger import (
    Held,
    Pair,
    Rows,
    Verdict,
    by_delivery,
    held,
    holes,
    judge,
    newly,
    read_rows,
    until_drained,
)
from tests.support.recipients import Receipt
from tests.support.tenants import Tenants
from tests.support.waiting import in_time

LEASE_SECONDS = 30.0
TAKEOVER_SECONDS = LEASE_SECONDS + 5.0
DRAIN_SECONDS = 70.0
LAG_SECONDS = 5.0
HUNG_SECONDS = 10.5
"""The promise is 10 s; the rest is for a machine that measures while it works."""
BEFORE_SECONDS = 1.0
"""Seconds before a fault in which an event may be delayed by the fault."""
EVEN = 0.3
"""Each node does at least this part of its even share; with two nodes, of the whole."""

# A delivery that got one 2xx is not sent again.
TWICE = """
select count(*) from (
  select delivery_id from attempts where outcome = 'success' group by 1 having count(*) > 1
) as again
"""


async def judged(
    fault: str,
    fleet: Fleet,
    *,
    unknown_allowed: bool = False,
    lags: bool = True,
    broken_allowed: bool = False,
    got: list[Receipt] | None = None,
    rewound: Set[Pair] = frozenset(),
) -> Verdict:
    """Wait for the end of all deliveries, and join responses, rows and requests.

    `got` is the received requests without those of a lost part of the history; the deliveries in
    `rewound` may have been claimed in that part, too.
    """
    load = fleet.load
    left = await until_drained(fleet.url, DRAIN_SECONDS)
    rows = await read_rows(fleet.url)
    [(twice,)] = await fleet.query(TWICE)
    got = fleet.there.got if got is None else got
    verdict = judge(
        fault, load, rows, got, in_flight=fleet.in_flight, unknown_allowed=unknown_allowed,
        rss=max(node.product.rss() for node in fleet.nodes),
    )  # fmt: skip
    verdict.find(left, "events and deliveries unfinished")
    verdict.find(sum(not node.product.running for node in fleet.nodes), "nodes that ended")
    verdict.find(await holes(fleet.url), "webhooks whose deliveries are not numbered 1 to n")
    double = same_attempt_twice(got, rewound, load.tenants) + twice
    verdict.find(double, "double claims")
    overlapping = overlaps(got, {pair for met in fleet.in_flight for pair in met}, load.tenants)
    verdict.find(overlapping, "requests of one delivery at the same time")
    verdict.find(len(load.wrong), f"refusals other than a good 503: {load.wrong[:3]}")
    if not broken_allowed:
        verdict.find(len(load.broken), "writes without an answer")
    slowest = slowest_answer(fleet)
    verdict.find(slowest > HUNG_SECONDS, f"an answer took {slowest:.1f} s")
    free, held = worst_lags(rows, load.acked_at, got, fleet.spells, load.tenants)
    if lags:
        verdict.find(not free, "faults held every webhook: the lag was not measured")
        verdict.find(free > LAG_SECONDS, f"a webhook that no fault held waited {free:.1f} s")
    verdict.figures |= {
        "worst_lag_s": round(free, 2), "worst_held_lag_s": round(held, 2),
        "slowest_answer_s": round(slowest, 2), "double_claims": double,
        "shares": {name: round(share, 2) for name, share in shares(fleet).items()},
        "refused": len(load.refused), "broken": len(load.broken),
        "held": [len(met) for met in fleet.in_flight],
    }  # fmt: skip
    return verdict


def shares(fleet: Fleet) -> dict[str, float]:
    """Return each node's share of all requests."""
    sent = Counter(receipt.agent for receipt in fleet.there.got)
    return {node.name: sent[node.agent] / max(sent.total(), 1) for node in fleet.nodes}


def find_uneven(verdict: Verdict, fleet: Fleet) -> None:
    """Find nodes with too small a share."""
    nodes = len(fleet.nodes)
    least = EVEN if nodes == 2 else EVEN / nodes
    small = [f"{name} {share:.0%}" for name, share in shares(fleet).items() if share < least]
    verdict.find(len(small), f"nodes with too small a part: {', '.join(small)}")


def same_attempt_twice(got: Iterable[Receipt], but: Set[Pair], tenants: Tenants) -> int:
    """Return attempts of one delivery with the same number: claimed by two at once."""
    return sum(
        len(receipts) - len({receipt.attempt for receipt in receipts})
        for pair, receipts in by_delivery(got, tenants).items()
        if pair not in but
    )


def overlaps(got: Iterable[Receipt], held: Set[Pair], tenants: Tenants) -> int:
    """Return requests of one delivery that overlapped at a receiver, except during a fault."""
    return sum(
        later.at < min((t for t in (earlier.answered, earlier.gone) if t is not None), default=inf)
        for pair, receipts in by_delivery(got, tenants).items()
        if pair not in held
        for earlier, later in pairwise(receipts)
    )


def slowest_answer(fleet: Fleet) -> float:
    """Return seconds, without requests to a process while it was frozen."""
    return max(
        (
            answer.seconds
            for answer in fleet.load.answers
            if not any(
                spell.address == answer.address
                and spell.start < answer.ended
                and answer.began < spell.end
                for spell in fleet.spells
            )
        ),
        default=0.0,
    )


def worst_lags(
    rows: Rows, acked_at: dict[str, float], got: Iterable[Receipt], spells: list[Spell],
    tenants: Tenants,
) -> tuple[float, float]:  # fmt: skip
    """Return the longest times from response to arrival: for unaffected webhooks, for others."""
    came = by_delivery(got, tenants)
    first = {pair: min(r.at for r in receipts) for pair, receipts in came.items()}
    free = held = 0.0
    for event, owner, _, request in rows.events:
        acked = acked_at.get(request)
        if acked is None:
            continue
        for webhook in tenants.webhooks[owner]:
            arrived = first.get((event, webhook))
            if arrived is None:
                continue
            if any(
                webhook in spell.webhooks and spell.start - BEFORE_SECONDS < acked < spell.end
                for spell in spells
            ):
                held = max(held, arrived - acked)
            else:
                free = max(free, arrived - acked)
    return free, held


SEED = 80260
ROUNDS = 10
SHORT_SECONDS = (0.5, 1.5)
STUCK_SECONDS = (5.5, 7.0)
"""Seconds of a short fault that met an open transaction: longer than others may wait."""
BETWEEN_SECONDS = (0.3, 1.2)
BACK_SECONDS = 15.0
RESTARTED_SECONDS = 5.0
DELIVERED_SECONDS = 5.0
BUSY_RATE = 400.0
LATE = "select event_id, webhook_id from attempts where node_id = any('{{{}}}')"
FENCED = re.compile(r"^outbox_fenced_acks_total (\S+)", re.MULTILINE)
TERMINATE = """
select pg_terminate_backend(pid) from pg_stat_activity
where application_name = 'carteiro' and usename like 'node_'
"""
ENDED = "select count(*) from nodes where alive_until < due_now()"
NAMES = "select count(*) from who_is"

# A write as the product makes it: a copy of an existing contact and its event.
CONTACT = """
insert into contacts select copy.* from contacts c,
  jsonb_populate_record(c, jsonb_build_object('id', $1::text, 'name', $2::text)) copy
where c.id = $3
"""
EVENT = """
insert into events overriding user value select copy.* from events e,
  jsonb_populate_record(e, jsonb_build_object(
    'id', $1::text, 'request_id', $2::text, 'record_id', $1::text, 'seq', null)) copy
where e.record_id = $3
"""


async def test_two_nodes_share() -> None:
    """Both deliver, though all writes go to one of them, which is kept busy.

    A node with little to do delivers what it has stored itself.
    """
    async with fleet(SEED, 2) as site:
        async with site.load.writing(site.nodes[0].product.address, rate=BUSY_RATE):
            await asyncio.sleep(10)
        # So many writes may be more than the machine delivers at once.
        verdict = await judged("2 nodes share", site, lags=False)
        find_uneven(verdict, site)
    verdict.must_hold()


async def test_nodes_are_killed() -> None:
    async with fleet(SEED) as site:
        async with site.busy():
            for _ in range(5):
                await site.seconds(*BETWEEN_SECONDS)
                node = site.dice.choice(site.nodes)
                at = node.product.kill()
                await node.product.ended()
                met = newly(await site.held_by(node), site.in_flight)
                await node.product.start()
                site.in_flight.append(met)
                site.note(at, met, node.product.address, TAKEOVER_SECONDS)
        verdict = await judged("kills of a node", site, broken_allowed=True)
        slots = sum(map(len, site.in_flight))
    verdict.find(verdict.duplicated > slots, "more duplicates than were in flight")
    verdict.find(not slots, "no kill met a send")
    verdict.must_hold()


async def run_long_freeze(seed: int, *, broken: str = "") -> Verdict:
    """Freeze a node past its lease during an attempt: others take over, it is fenced."""
    async with fleet(seed, broken=broken) as site:
        node = site.dice.choice(site.nodes)
        async with site.busy():
            await in_time(lambda: site.busy_with(node), BACK_SECONDS)
            at = site.freeze(node)
            met, names = await site.held_by(node), await site.ids_of(node)
            taken_over = await taken_over_after(site, met, at)
            await asyncio.sleep(max(at + TAKEOVER_SECONDS - time.monotonic(), 0.0))
            back = await site.until_acked(node, site.thaw(node), BACK_SECONDS)
            await in_time(lambda: _fenced(node), BACK_SECONDS)
            site.in_flight.append(met)
            site.note(at, met, node.product.address)
        verdict = await judged("freeze past the lease", site, broken_allowed=True)
        fenced = await _fenced(node)
        await _find_late(verdict, site, met, names)
    verdict.find(not fenced and not broken, "no late settling was fenced")
    _find_slow(verdict, taken_over, back)
    return verdict


async def _fenced(node: Node) -> bool:
    """Return whether a late result of the node was refused."""
    found = FENCED.search((await node.product.get("/metrics"))[1])
    return found is not None and float(found[1]) > 0


async def test_a_node_stands_still_past_its_lease() -> None:
    (await run_long_freeze(SEED)).must_hold()


async def test_settling_without_the_claim_is_seen() -> None:
    assert await shows(partial(run_long_freeze, broken="settles_without_the_claim"), SEED, "late")


async def test_a_node_is_cut_off_past_its_lease() -> None:
    """No connection closes meanwhile."""
    async with fleet(SEED, dark=1) as site:
        [node, *_] = site.nodes
        assert node.hole is not None
        async with site.busy():
            await in_time(lambda: site.busy_with(node), BACK_SECONDS)
            node.hole.darken()
            at = time.monotonic()
            met, names = await site.held_by(node), await site.ids_of(node)
            taken_over = await taken_over_after(site, met, at)
            await asyncio.sleep(max(at + 45 - time.monotonic(), 0.0))
            node.hole.lighten()
            lit = time.monotonic()
            back = await site.until_acked(node, lit, BACK_SECONDS)
            # Slow requests of this node count as slow: it is disconnected, not frozen.
            site.in_flight.append(met)
            site.note(at, met)
        verdict = await judged("cut off past the lease", site, unknown_allowed=True)
        await _find_late(verdict, site, met, names)
        sent = [r.at - at for r in site.there.got if r.agent == node.agent and at < r.at < lit]
    last = max(sent, default=0.0)
    verdict.find(last > LEASE_SECONDS, f"it sent for {last:.1f} s after it was cut off")
    verdict.figures["sent_for_s"] = round(last, 1)
    _find_slow(verdict, taken_over, back)
    verdict.must_hold()


async def test_nodes_stand_still_for_a_while() -> None:
    async with fleet(SEED) as site:
        async with site.busy():
            for _ in range(ROUNDS):
                await site.seconds(*BETWEEN_SECONDS)
                node = site.dice.choice(site.nodes)
                at = site.freeze(node)
                met = await site.held_by(node)
                await _last(site, node)
                site.thaw(node)
                site.note(at, met, node.product.address)
        (await judged("short freezes", site, broken_allowed=True)).must_hold()


async def test_nodes_are_cut_off_for_a_while() -> None:
    async with fleet(SEED, dark=4) as site:
        async with site.busy():
            for _ in range(ROUNDS):
                await site.seconds(*BETWEEN_SECONDS)
                node = site.dice.choice(site.nodes)
                assert node.hole is not None
                node.hole.darken()
                at = time.monotonic()
                met = await site.held_by(node)
                await _last(site, node)
                node.hole.lighten()
                site.note(at, met)
        (await judged("short black holes", site, unknown_allowed=True)).must_hold()


async def _last(site: Fleet, node: Node) -> None:
    """Wait for the length of a short fault, which depends on whether it met a transaction."""
    await site.seconds(*(STUCK_SECONDS if await site.in_transaction(node) else SHORT_SECONDS))


async def taken_over_after(site: Fleet, met: Held, at: float) -> float:
    """Return the seconds from `at` until no claim of `met` is left."""
    claims = set(met.values())

    async def free() -> bool:
        return not claims & set((await held(site.url)).values())

    await in_time(free, DRAIN_SECONDS)
    return time.monotonic() - at


async def _find_late(verdict: Verdict, site: Fleet, met: Held, names: Set[str]) -> None:
    """Find attempts recorded under an expired name after the loss of their claims."""
    written = await site.query(LATE.format(",".join(sorted(names))))
    late = sum((event, webhook) in met for event, webhook in written)
    verdict.find(late, "late settlings that changed something")
    verdict.find(not met, "nothing was under way at the fault")
    verdict.figures["late"] = late


def _find_slow(verdict: Verdict, taken_over: float, back: float) -> None:
    verdict.find(taken_over > TAKEOVER_SECONDS, f"taken over only after {taken_over:.1f} s")
    verdict.find(back >= BACK_SECONDS, "the node did not come back")
    verdict.figures |= {"taken_over_s": round(taken_over, 1), "back_s": round(back, 2)}


@asynccontextmanager
async def _holding(site: Fleet, statement: str) -> AsyncIterator[None]:
    """Keep a foreign transaction with `statement` open while the block runs."""
    connection = await asyncpg.connect(site.url)
    try:
        async with connection.transaction():
            await connection.execute(statement)
            yield
    finally:
        await connection.close()


async def test_a_lane_is_locked() -> None:
    """Only its webhook waits."""
    async with fleet(SEED) as site:
        webhook = site.dice.choice(sorted(site.load.tenants.paths.values()))
        lock = f"select 1 from lanes where webhook_id = '{webhook}' for update"
        async with site.busy():
            at = time.monotonic()
            async with _holding(site, lock):
                await asyncio.sleep(30)
            site.note(at, {("", webhook): ""})
        (await judged("a lane locked for 30 s", site)).must_hold()


@pytest.mark.parametrize(("table", "seconds"), [("deliveries", 40), ("events", 15)])
async def test_a_table_is_locked(table: str, seconds: float) -> None:
    """The API responds in time, and leases stay valid."""
    async with fleet(SEED) as site:
        async with site.busy():
            async with _holding(site, f"lock table {table} in access exclusive mode"):
                await asyncio.sleep(seconds)
                [(ended,)] = await site.query(ENDED)
        [(names,)] = await site.query(NAMES)
        # The backlog goes first, so the delay of each delivery means nothing.
        verdict = await judged(f"{table} locked", site, unknown_allowed=True, lags=False)
    verdict.find(max(ended, names - len(site.nodes)), "nodes that lost their lease")
    verdict.must_hold()


async def test_the_server_crashes() -> None:
    back: list[float] = []
    async with fleet(SEED) as site:
        async with site.busy():
            for _ in range(ROUNDS):
                await site.seconds(0.3, 0.8)
                at = time.monotonic()
                await site.cluster.crash()
                await site.seconds(0.0, 1.0)
                await site.cluster.start()
                up = time.monotonic()
                back += await asyncio.gather(
                    *(site.until_acked(node, up, 20.0) for node in site.nodes)
                )
                site.note(at)
        verdict = await judged("crashes of postgres", site, unknown_allowed=True)
    slow = sum(seconds > RESTARTED_SECONDS for seconds in back)
    verdict.find(slow, f"times that a node was not back in {RESTARTED_SECONDS:.0f} s")
    verdict.figures["back_s"] = round(max(back), 2)
    verdict.must_hold()


async def test_backends_are_terminated() -> None:
    async with fleet(SEED) as site:
        async with site.busy():
            for _ in range(ROUNDS):
                await site.seconds(0.2, 0.6)
                await site.cluster.run(TERMINATE)
        (await judged("pg_terminate_backend", site, unknown_allowed=True)).must_hold()


async def test_an_event_is_committed_late() -> None:
    """A transaction takes a low position in `events` and commits a minute late.

    It blocks nobody, so this run also shows each node's share of the work.
    """
    request, record = f"r{SEED}-late", "f" * 24
    async with fleet(SEED) as site:
        load = site.load
        async with site.busy():
            model = next(iter(load.acked.values()))
            connection = await asyncpg.connect(site.url)
            try:
                async with connection.transaction():
                    await connection.execute(CONTACT, record, request, model)
                    await connection.execute(EVENT, record, request, model)
                    await asyncio.sleep(60)
            finally:
                await connection.close()
            load.acked[request], load.acked_at[request] = record, time.monotonic()
        verdict = await judged("an event committed 60 s late", site)
        find_uneven(verdict, site)
        came = [r.at for r in site.there.got if r.event_id == record]
    lag = max(came, default=0.0) - load.acked_at[request]
    verdict.find(not came, "the late event never came")
    verdict.find(lag > DELIVERED_SECONDS, f"the late event came {lag:.1f} s late")
    verdict.figures["late_event_s"] = round(lag, 2)
    verdict.must_hold()
