"""Judge a run of several nodes: the ledger, the lag, each node's share, double claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set
from itertools import pairwise
from math import inf

from tests.support.fleet import Fleet, Spell
from tests.support.ledger import (
    Pair,
    Rows,
    Verdict,
    by_delivery,
    holes,
    judge,
    read_rows,
    until_drained,
)
from tests.support.recipients import Receipt
from tests.support.tenants import Tenants

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
