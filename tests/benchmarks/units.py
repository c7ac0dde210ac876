"""How long each kind of unit of the engine holds SQLite's writer when its work is at its limit.

The CPU time of the thread that runs it, without COMMIT: what others do on the machine is not in it.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from outbox.database.transaction import Database, Tx
from outbox.queue.drain import cycle
from outbox.queue.drain import settle as settlements
from outbox.queue.drain.claim import CLAIMS_AT_ONCE
from outbox.queue.drain.fanout import EVENTS_AT_ONCE
from outbox.queue.order import ordering
from outbox.queue.state import figures
from outbox.queue.state.deliveries import Claimed, Endpoint, Result
from outbox.queue.state.policy import Decision
from outbox.queue.upkeep import erasure as erasing
from outbox.queue.upkeep import keep_newest, parking, personal_data
from outbox.queue.upkeep.retention import (
    COUNTS,
    PAGE,
    expire_parked,
    purge_deliveries,
    purge_events,
)
from outbox.sending.outcome import Outcome
from outbox.webhooks.conditions import MOST, Condition
from tests.benchmarks.figures import Verdict
from tests.benchmarks.sizes import Size
from tests.benchmarks.unit_rows import add, capacity, make, opened, rounds, timed

BAR_MS = 10.0
FULL_ANSWER = b"x" * 16 * 1024
EVENTS_NUMBERED = EVENTS_AT_ONCE["sqlite"]
HEADERS = ["Content-Type: application/json"] * 12
MATCHING = {f"f{n}": "x" * 300 for n in range(MOST - 1)} | {"amount": 1.5}
STRICT = (*(Condition(f"f{n}") for n in range(MOST - 1)), Condition("amount", "12.50"))
Make = Callable[[Database], Awaitable[Sequence[float]]]


async def units(size: Size) -> Verdict:
    """Measure each kind: the longest of its units, each by its shortest run."""
    verdict = Verdict("units")
    for name, kind in KINDS.items():
        runs: list[Sequence[float]] = []
        for _ in range(size.runs):
            async with opened() as db:
                # Once before, because a new connection prepares each statement.
                await kind(db)
                gc.collect()
                gc.disable()
                try:
                    runs.append(await kind(db))
                finally:
                    gc.enable()
        # The units of all runs do the same; in the shortest one nothing disturbed it.
        longest = max(min(same) for same in zip(*runs, strict=False))
        verdict.at_most(f"{name}_ms", longest * 1000, BAR_MS)
    return verdict


async def fan_out_deliveries(db: Database) -> list[float]:
    await add(db, 50)
    await make(db, 2 * EVENTS_NUMBERED)
    return await rounds(db)


async def fan_out_conditions(db: Database) -> list[float]:
    await add(db, 50, conditions=STRICT)
    await make(db, 2 * EVENTS_NUMBERED, MATCHING)
    return await rounds(db)


async def fan_out_bodies(db: Database) -> list[float]:
    await add(db, 1, conditions=STRICT)
    await make(db, 30, {"text": "x" * 500_000})
    return await rounds(db)


async def fan_out_webhooks(db: Database) -> list[float]:
    await add(db, 2_000, conditions=STRICT[:-1])
    await make(db, 2, MATCHING)
    return await rounds(db)


async def fan_out_owners(db: Database) -> list[float]:
    for number in range(EVENTS_NUMBERED):
        await add(db, 3, f"{number:024x}")
        await make(db, 1, owner=f"{number:024x}")
    return await rounds(db)


async def fan_out_beside_remainders(db: Database) -> list[float]:
    """Many webhooks of one owner, and whole rounds of new events of others."""
    await add(db, 500)
    await add(db, 1, "1" * 24)
    await make(db, 20)
    found = await rounds(db, 5)
    for _ in range(5):
        await make(db, EVENTS_NUMBERED, owner="1" * 24)
        found += await rounds(db, 2)
    return found


async def _waiting(db: Database, lanes: int, each: int) -> list[str]:
    ids = await add(db, lanes)
    await make(db, each)
    await rounds(db)
    return ids


async def claim(db: Database) -> list[float]:
    """As many claims as one unit makes, each in a lane of its own, and no new events."""
    await _waiting(db, 2 * CLAIMS_AT_ONCE["sqlite"], 1)
    return [(await db.write(timed, cycle.take, capacity(256)))[1]]


async def take(db: Database) -> list[float]:
    """Claims and fan-out, both at their limit."""
    await _waiting(db, 2 * CLAIMS_AT_ONCE["sqlite"], 1)
    await add(db, 50, "1" * 24)
    await make(db, EVENTS_NUMBERED, owner="1" * 24)
    return [(await db.write(timed, cycle.take, capacity(256)))[1] for _ in range(3)]


async def _results(db: Database, answer: bytes = FULL_ANSWER) -> list[Result]:
    most = min(db.batch.rows, db.batch.size // len(answer))
    await _waiting(db, most, 1)
    claimed: list[Claimed] = []
    endpoints: dict[str, Endpoint] = {}
    while len(claimed) < most:
        _, taken = await db.write(cycle.take, capacity(most))
        for one in taken:
            claimed += one.claimed
            endpoints |= one.endpoints
    outcome = Outcome(
        "http_5xx", 500, None, None, "192.0.2.1", None, None, None, 900, 2_000,
        [("Content-Type", "application/json")] * 20, answer, False, True,
    )  # fmt: skip
    failed = Decision("ready", "http_5xx", 1_000_000, None, False, "keep", True, True)
    return [
        Result(
            one, failed, outcome, db.clock.wall(), HEADERS, endpoints[one.webhook_id].url, "node"
        )
        for one in claimed[:most]
    ]


async def settle(db: Database) -> list[float]:
    return [(await db.write(timed, settlements.settle, await _results(db)))[1]]


async def settle_small(db: Database) -> list[float]:
    return [(await db.write(timed, settlements.settle, await _results(db, b"{}")))[1]]


async def settle_and_claim(db: Database) -> list[float]:
    results = await _results(db)
    await make(db, 2)
    await rounds(db)
    return [(await db.write(timed, cycle.settle_and_claim, results, capacity(256)))[1]]


async def _ids(tx: Tx, text: str, *args: Any) -> list[str]:
    return [row["id"] for row in await tx.all(text, *args)]


async def _sent(db: Database) -> list[str]:
    """Store deliveries that ended long ago, each with an attempt; return their ids."""
    results = await _results(db)
    await db.write(settlements.settle, results)

    async def end(tx: Tx) -> list[str]:
        await tx.run("update deliveries set state = 'exhausted', finished_at = 1")
        return await _ids(tx, "select id from deliveries order by id limit $1", PAGE)

    return await db.write(end)


async def retention_deliveries(db: Database) -> list[float]:
    return [(await db.write(timed, purge_deliveries, await _sent(db), 2, db.clock))[1]]


async def retention_events(db: Database) -> list[float]:
    ids = await make(db, PAGE)
    await rounds(db)
    return [(await db.write(timed, purge_events, ids, db.clock))[1]]


async def _stopped(db: Database, ordered: bool = False) -> tuple[str, list[str]]:
    """Store many deliveries that wait at a paused webhook; return it and some of their ids."""
    [webhook_id] = await add(db, 1, ordered=ordered)
    await make(db, 1_500)
    await rounds(db)
    await db.write(parking._stop, webhook_id)
    last = "select id from deliveries order by seq desc limit $1"
    return webhook_id, await db.read(_ids, last, PAGE)


async def retention_parked(db: Database) -> list[float]:
    _, ids = await _stopped(db)
    return [(await db.write(timed, expire_parked, ids, db.clock))[1]]


async def activation(db: Database) -> list[float]:
    webhook_id, _ = await _stopped(db)
    unit = parking._activate
    return [(await db.write(timed, unit, webhook_id, "none"))[1]]


async def removal(db: Database) -> list[float]:
    webhook_id, _ = await _stopped(db)
    return [(await db.write(timed, parking._remove, webhook_id))[1]]


async def newest_of_records(db: Database) -> list[float]:
    webhook_id, ids = await _stopped(db)
    pairs = [(one, ids[-1]) for one in ids[:-1]]
    return [(await db.write(timed, keep_newest._end, webhook_id, pairs))[1]]


async def order_off(db: Database) -> list[float]:
    webhook_id, _ = await _stopped(db, ordered=True)
    await db.write(ordering.begin, webhook_id, False)
    return [(await db.write(timed, ordering._step, webhook_id))[1]]


async def erasure_bodies(db: Database) -> list[float]:
    ids = await make(db, erasing.EVENTS, {"text": "x" * (erasing.BYTES // erasing.EVENTS)})
    await rounds(db)
    return [(await db.write(timed, personal_data.erase_bodies, ids))[1]]


async def erasure_deliveries(db: Database) -> list[float]:
    """Deliveries that wait, each at a webhook of its own."""
    webhooks = await _waiting(db, erasing.DELIVERIES_AT_ONCE, 1)
    ids = await db.read(_ids, "select id from deliveries where state = 'ready'")
    return [(await db.write(timed, personal_data.cancel, ids, set(webhooks)))[1]]


async def erasure_answers(db: Database) -> list[float]:
    results = await _results(db)
    await db.write(settlements.settle, results)
    ids = sorted({one.delivery.id for one in results})
    return [(await db.write(timed, personal_data.erase_answers, ids, erasing.ANSWERS_AT_ONCE))[1]]


async def figures_folded(db: Database) -> list[float]:
    async def old(tx: Tx) -> None:
        counts = {
            (f"w{n}", step * figures.STEP, "success"): [1] * len(figures.SUMS)
            for n in range(250) for step in range(2)
        }  # fmt: skip
        for span in figures.SPANS[:-1]:
            await figures.add(tx, span, counts)

    await db.write(old)
    return [(await db.write(timed, figures.fold, db.clock.wall(), COUNTS))[1]]


KINDS: dict[str, Make] = {
    "fan_out_deliveries": fan_out_deliveries,
    "fan_out_conditions": fan_out_conditions,
    "fan_out_bodies": fan_out_bodies,
    "fan_out_webhooks": fan_out_webhooks,
    "fan_out_owners": fan_out_owners,
    "fan_out_beside_remainders": fan_out_beside_remainders,
    "claim": claim,
    "take": take,
    "settle": settle,
    "settle_small": settle_small,
    "settle_and_claim": settle_and_claim,
    "retention_deliveries": retention_deliveries,
    "retention_events": retention_events,
    "retention_parked": retention_parked,
    "activation": activation,
    "removal": removal,
    "newest_of_records": newest_of_records,
    "order_off": order_off,
    "erasure_bodies": erasure_bodies,
    "erasure_deliveries": erasure_deliveries,
    "erasure_answers": erasure_answers,
    "figures_folded": figures_folded,
}
