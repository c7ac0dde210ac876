"""Name servers with faults: their webhooks fail by name, and nobody else waits."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.ids import Ids
from outbox.webhooks.key_files import read_key_file
from tests.benchmarks.figures import quantile
from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine
from tests.support.ledger import Verdict, query
from tests.support.load import Load
from tests.support.names import FAULTS, names
from tests.support.tenants import Tenants, move_in

HOSTS = 100
OWNERS = 4
RATE = 50.0
BAD_RATE = 2.0
WRITES = 300
CLOSED_PORT = 8_099
OF_NONE = 1.5
NOISE_MS = 300.0
"""A look-up that somebody waits for takes seconds."""
WITHIN_MS = 1_000.0
LOOKUP_SECONDS = 5.5
SETTLED_SECONDS = 40.0

LATENCIES = """
select (a.started_at + a.total_us - e.occurred_at) / 1000.0, e.occurred_at
from attempts a join events e on e.id = a.event_id join webhooks w on w.id = a.webhook_id
where w.url like 'http://fine.test:%' and a.outcome = 'success'
"""
BAD = """
select outcome, a.url, count(*), max(total_us) from attempts a join webhooks w on w.id = webhook_id
where w.url not like 'http://f%' group by outcome, a.url
"""


async def run_lookup_faults(engine: Engine, seed: int) -> dict[str, Any]:
    """Write beside events for a hundred hosts whose look-ups fail; return the record."""
    with tempfile.TemporaryDirectory(prefix="carteiro-names-") as home:
        async with (
            names(Path(home)) as server,
            deployed(engine, seed, host="fine.test", prefix=server.prefix, started=False) as site,
        ):
            # Their names resolve, and nobody listens: as many attempts without a look-up's fault.
            refusing = Load(await _owners_of(site, 1_000, ("found",)), seed + 1)
            bad = Load(await _owners_of(site, 2_000, FAULTS), seed + 2)
            await site.product.start()
            # The first look-ups, connections and pages are nobody's fault.
            await _write(site, 50)
            none = await _write_beside(site, refusing)
            beside = await _write_beside(site, bad)
            verdict = await site.verdict("look-ups fail", strangers=True)
            await _until_all_failed(site)
            failed = await query(site.url, BAD)
    _judge(verdict, none, beside, failed)
    verdict.figures |= {"hosts": HOSTS, "look_ups": dict(server.asked)}
    return verdict.told()


async def _owners_of(site: Deployed, first: int, kinds: Sequence[str]) -> Tenants:
    """Create owners whose webhooks have names of these kinds; return them."""
    tenants = Tenants(site.load.tenants.key_file)
    ring = read_key_file(tenants.key_file, Ids())
    each = HOSTS // OWNERS
    db = await database.open(site.url, clock=SystemClock(), ids=Ids())
    try:
        for number in range(OWNERS):
            places = [
                f"http://{kinds[n % len(kinds)]}{number * each + n}.test:{CLOSED_PORT}/bad{n}"
                for n in range(each)
            ]
            await db.write(move_in, tenants, Ids(), ring, first + number, places)
    finally:
        await db.close()
    return tenants


async def _write_beside(site: Deployed, others: Load) -> tuple[list[float], list[float]]:
    async with others.writing(site.product.address, rate=BAD_RATE):
        await others.until_sent(3 * OWNERS)
        return await _write(site, WRITES)


async def _write(site: Deployed, count: int) -> tuple[list[float], list[float]]:
    """Return milliseconds of writes, and from their events to the responses of receivers."""
    first = SystemClock().wall()
    before = len(site.load.milliseconds)
    async with site.load.writing(site.product.address, rate=RATE):
        await site.more(count)
    await site.until_own(SETTLED_SECONDS)
    found = await query(site.url, LATENCIES)
    return site.load.milliseconds[before:], [float(ms) for ms, at in found if at >= first]


async def _until_all_failed(site: Deployed) -> None:
    """Wait until each of the bad hosts was looked up."""
    loop = asyncio.get_running_loop()
    end = loop.time() + SETTLED_SECONDS
    while len({url for _, url, _, _ in await query(site.url, BAD)}) < HOSTS:
        if loop.time() > end:
            return
        await asyncio.sleep(0.2)


def _judge(
    verdict: Verdict,
    none: tuple[list[float], list[float]],
    beside: tuple[list[float], list[float]],
    failed: Sequence[Any],
) -> None:
    for what, alone, together in zip(("write", "delivery"), none, beside, strict=True):
        before, after = quantile(alone, 0.99), quantile(together, 0.99)
        verdict.figures |= {
            f"{what}_none_p99_ms": round(before, 1), f"{what}_p99_ms": round(after, 1)
        }  # fmt: skip
        verdict.find(
            after > max(OF_NONE * before, before + NOISE_MS) or after > WITHIN_MS,
            f"the p99 of a {what} is {after:.0f} ms beside them and {before:.0f} ms without",
        )
    hosts = {url for _, url, _, _ in failed}
    verdict.find(HOSTS - len(hosts), "hosts without an attempt")
    outcomes: dict[str, int] = {}
    for outcome, url, count, longest in failed:
        outcomes[outcome] = outcomes.get(outcome, 0) + count
        # A name that answered late is known afterwards; its port is closed.
        known = outcome == "connect_error" and "://slow" in url
        verdict.find(outcome != "dns_error" and not known, f"{url}: {outcome}")
        verdict.find(longest > LOOKUP_SECONDS * 1e6, f"{url}: {longest / 1e6:.1f} s")
    verdict.find(outcomes.get("dns_error", 0) <= HOSTS, "no delivery was tried again")
    verdict.figures["outcomes"] = outcomes


SEED = 21260

pytestmark = [pytest.mark.proof, pytest.mark.timed, pytest.mark.timeout(300)]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_look_ups_that_fail_hold_up_nobody_else(engine: Engine) -> None:
    told = await run_lookup_faults(engine, SEED)
    assert told["pass"], told
