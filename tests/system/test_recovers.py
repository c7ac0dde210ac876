"""A recover job that is killed on its way ends complete: each failed delivery is replayed once."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial

from outbox.database import sql
from outbox.database.transaction import Tx
from outbox.events import message
from outbox.ids import Ids
from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine
from tests.support.faults import ENGINES, shows
from tests.support.ledger import Verdict, held, judge, newly, query, until_drained
from tests.support.product import Product
from tests.support.tenants import EVENT

SEED = 20260
COUNT = 20_000
RATE = 1_000
"""The fastest that a job may be."""
WRITES = 20.0
"""Writes per second meanwhile."""
AT_ONCE = 500
HOUR = 3_600_000_000
JOB = "select state, made, refused from jobs"
REPLAYS = "select event_id, state, replayed_by from deliveries where origin = 'replay'"
EVENTS = (
    "id", "seq", "owner_id", "name", "record_id", "record_version", "occurred_at", "body",
    "body_digest",
)  # fmt: skip
DELIVERIES = (
    "id", "owner_id", "event_id", "webhook_id", "origin", "state", "retry", "next_at", "tries",
    "attempts", "record_id", "seq", "created_at", "finished_at",
)  # fmt: skip


async def run_recover(
    count: int, engine: Engine, seed: int, *, kills: int = 2, within: float = 0.2,
    broken: str = "", nodes: int = 1,
) -> Verdict:  # fmt: skip
    """Recover `count` deliveries from the console, with writes and kills.

    Each kill comes `within` seconds of a random part of the way, so anywhere in a step of the job.
    Of several nodes it ends the one that leads, which runs the job.
    """
    async with AsyncExitStack() as stack:
        site = await stack.enter_async_context(
            deployed(engine, seed, owners=1, webhooks=1, broken=broken, started=False)
        )
        staged = await _stage(site, count)
        others = [site.node(f"other{number}") for number in range(nodes - 1)]
        for one in (site.product, *others):
            stack.push_async_callback(one.close)
            await one.start()
        told = await _start(site)
        products, ended, made_at = [site.product, *others], Counter[Product](), list[int]()
        # Each kill has its part of the way, and meets the job somewhere in it.
        for number in range(kills):
            mark = int(count * (number + site.dice.uniform(0.2, 0.8)) / (kills + 1))
            async with site.load.writing(products[-1].address, rate=WRITES):
                made_at.append(await _until(site, mark))
                product = await _leader(products, ended)
                await asyncio.sleep(site.dice.uniform(0.0, within))
                product.kill()
                ended[product] += 1
            await product.ended()
            if others:
                # The others go on.
                site.deaths.append(newly(await held(site.url), site.deaths))
            else:
                await site.died()
            await product.start()
        async with site.load.writing(products[-1].address, rate=WRITES):
            await _until(site, 2**60)
        left = await until_drained(site.url, 150.0)
        verdict = await _judged(site, staged)
    verdict.find(left, "events and deliveries unfinished")
    verdict.find(site.damaged, "files damaged")
    verdict.find(told != count, f"{told} deliveries were told before the start")
    # A kill proves something only on the way.
    verdict.find(sum(not 0 < made < count for made in made_at), "kills beside the way")
    verdict.find(len(site.load.refused), "writes refused")
    verdict.figures |= {"count": count, "made_at_kills": made_at}
    return verdict


async def _stage(site: Deployed, count: int) -> set[str]:
    """Store events whose deliveries were given up an hour ago; return the events."""
    [(owner_id, [webhook_id])] = site.tenants.webhooks.items()
    ids = Ids()

    async def some(tx: Tx, first: int, events: Sequence[str]) -> None:
        at = tx.now - HOUR
        bodies = [message(EVENT, at, {"id": event_id}) for event_id in events]
        await sql.insert(tx, "events", EVENTS, [
            (event_id, first + n, owner_id, EVENT, event_id, 1, at, body,
             hashlib.sha256(body).hexdigest())
            for n, (event_id, body) in enumerate(zip(events, bodies, strict=True))
        ])  # fmt: skip
        await sql.insert(tx, "deliveries", DELIVERIES, [
            (ids.new(at), owner_id, event_id, webhook_id, "event", "exhausted", True, 0, 10, 10,
             event_id, first + n, at, at)
            for n, event_id in enumerate(events)
        ])  # fmt: skip
        await tx.run("update outbox_state set seq = $1", first + len(events) - 1)

    async with site.opened() as db:
        staged = [ids.new(db.clock.wall() - HOUR) for _ in range(count)]
        for start in range(0, count, AT_ONCE):
            await db.write(some, start + 1, staged[start : start + AT_ONCE])
    return set(staged)


async def _leader(products: list[Product], ended: Counter[Product]) -> Product:
    """Return the node that leads, by its log; `ended` counts the leaders that were killed."""
    if len(products) == 1:
        return products[0]
    async with asyncio.timeout(60):
        while True:
            for product in products:
                log = product.log.read_text()
                if log.count('"leading"') - log.count('"no_longer_leading"') > ended[product]:
                    return product
            await asyncio.sleep(0.1)


async def _start(site: Deployed) -> int:
    """Start the job in the console; return the number that it told before."""
    [[webhook_id]] = site.tenants.webhooks.values()
    async with site.console() as somebody:
        path = f"/console/webhooks/{webhook_id}/recover"
        asked = await somebody.submit(
            path, kind="recover", ends=["exhausted", "gone", "dead"], since="2000-01-01T00:00",
            until="", rate=str(RATE),
        )  # fmt: skip
        hidden = re.findall('type="hidden" name="([a-z_]+)" value="([^"]*)"', asked.html)
        started = await somebody.post(path, hidden)
        assert started.path.startswith("/console/jobs/"), started
        [told] = re.findall(r"[\d,]+", asked.test_id("job-total") or "")
    return int(told.replace(",", ""))


async def _until(site: Deployed, mark: int) -> int:
    """Wait until the job has made so many replays, or has ended; return how many."""
    async with asyncio.timeout(300):
        while True:
            [(state, made, _)] = await query(site.url, JOB)
            if made >= mark or state != "running":
                return int(made)
            await asyncio.sleep(0.02)


async def _judged(site: Deployed, staged: set[str]) -> Verdict:
    """Judge the writes of the run as after any kill, and the replays.

    Each failed delivery has one replay, of a user, which its receiver has, and no other has.
    """
    rows, got, deaths = await site.own_rows(), site.there.got, site.deaths
    rows.events = [row for row in rows.events if row[0] not in staged]
    rows.deliveries = [row for row in rows.deliveries if row[0] not in staged]
    written = [receipt for receipt in got if receipt.event_id not in staged]
    verdict = judge(f"recover killed, {site.engine}", site.load, rows, written, in_flight=deaths)
    replays = await query(site.url, REPLAYS)
    had = Counter(event_id for event_id, _, _ in replays)
    verdict.lost += verdict.find(len(staged - set(had)), "failed deliveries never replayed")
    verdict.lost += verdict.find(
        sum(state != "delivered" for _, state, _ in replays), "replays not delivered"
    )
    verdict.unexpected += verdict.find(
        sum(n > 1 for n in had.values()) + len(set(had) - staged), "replays that should not be"
    )
    verdict.find(
        sum(user not in site.tenants.keys for _, _, user in replays), "replays without their user"
    )
    came = Counter(receipt.event_id for receipt in got if receipt.event_id in staged)
    verdict.lost += verdict.find(len(staged - set(came)), "replays that no receiver has")
    allowed = Counter(event_id for met in deaths for event_id, _ in met)
    verdict.duplicated += sum(n - 1 for n in came.values())
    verdict.unexpected += verdict.find(
        sum(max(n - 1 - allowed[event_id], 0) for event_id, n in came.items()),
        "arrivals repeated although no kill met them",
    )
    [job] = await query(site.url, JOB)
    verdict.find(job != ("done", len(staged), 0), f"the job is {job}")
    return verdict


@ENGINES
async def test_kills_lose_and_double_no_replay(engine: Engine) -> None:
    (await run_recover(COUNT, engine, SEED)).must_hold()


async def test_another_node_goes_on_when_the_one_that_leads_is_killed() -> None:
    (await run_recover(10_000, "postgres", SEED + 2, kills=3, nodes=3)).must_hold()


@ENGINES
async def test_moving_on_before_replaying_is_seen(engine: Engine) -> None:
    hasty = partial(run_recover, 2_000, engine, within=1.0, broken="jobs_move_on_first")
    assert await shows(hasty, SEED)
