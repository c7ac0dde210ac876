"""SIGTERM under load with receivers that hang, and ten deaths in a row (R14, R44)."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial

import aiohttp

from outbox.queue.state.policy import RESCUES_AT_ONCE
from tests.support.deployed import DRAIN_SECONDS, Deployed, deployed
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.support.ledger import Verdict, query, until_drained
from tests.support.product import Product
from tests.support.recipients import Receipt

SEED = 60260
HANGING = "/owner0/"
"""One owner in five has receivers that do not respond."""
GRACE = 10.0


async def _asked_to_stop(site: Deployed, *, twice: bool) -> tuple[float, int, int]:
    """Send SIGTERM under load; return seconds and status of the end, and what /readyz said."""
    async with site.writing(rate=100.0):
        await site.more(120)
        asked = time.monotonic()
        site.product.send(signal.SIGTERM)
        ready = await _readiness(site.product)
        if twice:
            asked = time.monotonic()
            site.product.send(signal.SIGTERM)
        status = await site.product.ended(GRACE + 20)
        return time.monotonic() - asked, status, ready


@dataclass
class _Stop:
    """What one stop showed."""

    site: Deployed
    verdict: Verdict
    took: float
    status: int
    log: str


async def _stopped(engine: Engine, *, twice: bool) -> _Stop:
    settings = {"CARTEIRO_SERVER__SHUTDOWN_SECONDS": str(GRACE)}
    async with deployed(engine, SEED, owners=5, latency=(0.0, 0.1), settings=settings) as site:
        site.there.behave(hang=[HANGING])
        took, status, ready = await _asked_to_stop(site, twice=twice)
        site.there.behave(release=True)
        await site.died()
        await site.product.start()
        # Each aborted send may be repeated once.
        left = await until_drained(site.url, DRAIN_SECONDS[engine])
        cut = [{(r.event_id, site.tenants.paths[r.path]): "cut"} for r in _gone(site)]
        verdict = await site.verdict("SIGTERM", in_flight=cut)
        log = site.product.log.read_text(errors="replace")
    verdict.find(left, "events and deliveries unfinished")
    verdict.find(ready != 503, f"/readyz said {ready} after SIGTERM")
    verdict.figures |= {
        "exit": status, "ended_s": round(took, 2), "sends_cut": len(_gone(site)),
        "not_accepted": len(site.load.broken),
    }  # fmt: skip
    return _Stop(site, verdict, took, status, log)


def _gone(site: Deployed) -> list[Receipt]:
    return [receipt for receipt in site.there.got if receipt.gone is not None]


async def _readiness(product: Product) -> int:
    """Return the status of /readyz after SIGTERM; 0 when nobody responds."""
    for _ in range(20):
        if (status := (await product.get("/readyz"))[0]) != 200:
            return status
        await asyncio.sleep(0.02)
    return 200


@ENGINES
async def test_the_grace(engine: Engine) -> None:
    stop = await _stopped(engine, twice=False)
    site, verdict = stop.site, stop.verdict
    verdict.find(stop.status, "as exit status")
    verdict.find(stop.took > GRACE + 1.0, f"ended after {stop.took:.1f} s")
    verdict.find(len(site.deaths[0]), "deliveries still in flight after it ended")
    answered = sum(not receipt.path.startswith(HANGING) for receipt in _gone(site))
    verdict.find(answered, "sends cut off although their receiver was about to answer")
    # A connection in the kernel's queue when listening ended was never accepted: the server's
    # log, which names each request that reached it, does not contain it.
    unanswered = [how for request_id, how in site.load.broken.items() if request_id in stop.log]
    verdict.find(len(unanswered), f"writes without an answer: {Counter(unanswered)}")
    verdict.must_hold()


@ENGINES
async def test_a_second_sigterm_ends_it_at_once(engine: Engine) -> None:
    stop = await _stopped(engine, twice=True)
    stop.verdict.find(stop.took > 1.0, f"ended {stop.took:.1f} s after the second SIGTERM")
    stop.verdict.must_hold()


DEATHS = 10
TAKES = 12.0
WAITS = "5,300,90,7200,18000,36000,50400,72000,86400"
"""The default, but the third wait: it holds the deaths that follow, and the test waits for it."""
STANDING = "select state, tries, rescues from deliveries"


def _more_than(number: int, got: list[Receipt]) -> bool:
    return len(got) > number


@ENGINES
async def test_ten_deaths_end_no_delivery_of_a_slow_receiver(engine: Engine) -> None:
    """A healthy receiver takes 12 s."""
    settings = {"CARTEIRO_RETRY__SCHEDULE": WAITS}
    async with deployed(
        engine, SEED, owners=1, webhooks=1, latency=(TAKES, TAKES), settings=settings
    ) as site:
        async with aiohttp.ClientSession() as http:
            await site.load.write(http, site.product.address)
        for number in range(DEATHS):
            # On PostgreSQL it is sent again when the dead process's lease has ended. From the third
            # death on it waits, and the process dies without it.
            waits = number > RESCUES_AT_ONCE
            with suppress(TimeoutError) if waits else nullcontext():
                await site.there.until(partial(_more_than, number), 2 if waits else 60)
            site.product.kill()
            await site.product.ended()
            await site.product.start()
        print(await query(site.url, STANDING))
        assert await until_drained(site.url, 240) == 0
        assert len(site.there.got) == RESCUES_AT_ONCE + 2
        assert await query(site.url, STANDING) == [("delivered", 1, 0)]
