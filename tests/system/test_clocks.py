"""Wall clocks that jump: nothing is sent early, late or twice.

On SQLite nothing is sent sooner or later for it. On PostgreSQL the server's clock decides, and a
node whose own clock is more than a minute off sends nothing until it is right again (R35).
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine
from tests.support.ledger import Held, query, until_drained
from tests.support.shim import Shim, shim
from tests.support.waiting import in_time

HOUR, DAY = 3_600, 86_400
JUMPS = (2 * HOUR, -2 * HOUR, 30 * DAY, -30 * DAY)
RATE = 50.0
WRITES = 40
WEBHOOKS = 3
FAILED = 10
"""Writes whose deliveries fail once; their retries are due in an hour."""
WAIT_SECONDS = 60.0
STORM = 1.1
SETTINGS = {
    "CARTEIRO_RETRY__SCHEDULE": "3600",
    # What is written a month back is no older than what is kept.
    "CARTEIRO_RETENTION__EVENTS_DAYS": "90",
    "CARTEIRO_RETENTION__DELIVERIES_DAYS": "90",
}
WAITING = "select count(*) from deliveries where state = 'ready'"
DRAINED_SECONDS = 20.0
NOTICED_SECONDS = 60.0


async def run_clock_jumps(
    engine: Engine, seed: int, *, module: str = "gateway", patience: float = 2 * WAIT_SECONDS
) -> dict[str, Any]:
    """Jump there and back during load, then restart while the clock is off; return the record.

    `module` is another entry point in place of the product: the negative control, for which
    nobody waits longer than `patience`.
    """
    with tempfile.TemporaryDirectory(prefix="carteiro-clock-") as home, shim(Path(home)) as faults:
        settings = faults.environment | SETTINGS
        async with deployed(
            engine, seed, webhooks=WEBHOOKS, module=module, settings=settings
        ) as site:
            if engine == "sqlite":
                return await _on_sqlite(site, faults, patience)
            return await _on_postgres(site, faults)


async def _on_sqlite(site: Deployed, faults: Shim, patience: float) -> dict[str, Any]:
    failed = await _fail_some(site)
    phases = {"right": await _phase(site, patience)}
    [(due,)] = await query(site.url, WAITING)
    for ahead in JUMPS:
        faults.set(ahead_seconds=ahead)
        phases[f"{ahead / HOUR:+.0f} h"] = await _phase(site, patience)
        faults.set()
        phases[f"back from {ahead / HOUR:+.0f} h"] = await _phase(site, patience)
    for ahead in (-2 * HOUR, 2 * HOUR, 0):
        await site.product.stop()
        faults.set(ahead_seconds=ahead)
        await site.product.start()
        # Two hours ahead at a start are two hours that passed: the retries are due.
        phases[f"restart at {ahead / HOUR:+.0f} h"] = await _phase(
            site, patience, due if ahead > 0 else 0
        )
    verdict = await site.verdict(
        "wall clock jumps", in_flight=[failed], seconds=min(patience, 20.0)
    )
    slow = {name: round(waited, 1) for name, (waited, _) in phases.items() if waited > WAIT_SECONDS}
    storms = {name: sent for name, (_, sent) in phases.items() if not 1 / STORM <= sent <= STORM}
    verdict.find(len(slow), f"phases with a delivery later than 60 s: {slow}")
    verdict.find(len(storms), f"phases with too many or too few attempts: {storms}")
    verdict.find(len(site.load.refused) + len(site.load.broken), "writes refused or cut")
    verdict.find(not due, "no retry waited: the jumps could make none due")
    verdict.figures |= {
        "phases": len(phases),
        "retries_waiting": due,
        "slowest_s": round(max(waited for waited, _ in phases.values()), 2),
        "attempts_of_expected": round(max(sent for _, sent in phases.values()), 3),
    }
    return verdict.told()


async def _fail_some(site: Deployed) -> Held:
    """Let some deliveries fail, and so wait for an hour; return them."""
    site.there.behave(status=500)
    async with aiohttp.ClientSession(site.product.address) as http:
        for _ in range(FAILED):
            await site.load.write(http)
    await site.there.until(lambda got: len(got) == FAILED * WEBHOOKS)
    site.there.behave(status=200)
    return {
        (receipt.event_id, site.load.tenants.paths[receipt.path]): "failed once"
        for receipt in site.there.got
    }


async def _phase(
    site: Deployed, patience: float = WAIT_SECONDS, due: int = 0
) -> tuple[float, float]:
    """Write for a while; return the seconds until all arrived, and attempts by those expected.

    `due` attempts are expected beside those of the writes.
    """
    before, acked = len(site.there.got), len(site.load.acked)
    async with site.load.writing(site.product.address, rate=RATE):
        await site.more(WRITES)
    written = time.monotonic()
    expected = (len(site.load.acked) - acked) * WEBHOOKS + due
    await in_time(lambda: len(site.there.got) - before >= expected, patience)
    waited = time.monotonic() - written
    # Whatever is too much comes now.
    await asyncio.sleep(1.5)
    return waited, (len(site.there.got) - before) / expected


async def _on_postgres(site: Deployed, faults: Shim) -> dict[str, Any]:
    phases = {}
    for ahead in JUMPS:
        await _phase(site)
        faults.set(ahead_seconds=ahead)
        noticed = await _status(site, 503)
        before = len(site.there.got)
        async with site.load.writing(site.product.address, rate=RATE):
            await site.more(WRITES)
        sent = len(site.there.got) - before
        faults.set()
        ready = await _status(site, 200)
        left = await until_drained(site.url, DRAINED_SECONDS)
        phases[f"{ahead / HOUR:+.0f} h"] = (noticed, sent, ready, left)
    verdict = await site.verdict("wall clock jumps")
    wrong = {
        name: found
        for name, found in phases.items()
        if max(found[0], found[2]) > NOTICED_SECONDS or found[1] or found[3]
    }
    verdict.find(len(wrong), f"phases (noticed s, sent meanwhile, ready s, left): {wrong}")
    verdict.find(len(site.load.refused) + len(site.load.broken), "writes refused or cut")
    verdict.figures |= {
        "phases": len(phases),
        "noticed_s": round(max(found[0] for found in phases.values()), 2),
        "ready_s": round(max(found[2] for found in phases.values()), 2),
    }
    return verdict.told()


async def _status(site: Deployed, wanted: int) -> float:
    """Return the seconds until /readyz says `wanted`."""
    began = time.monotonic()
    async with aiohttp.ClientSession(site.product.address) as http:
        while time.monotonic() < began + 2 * NOTICED_SECONDS:
            async with http.get("/readyz") as answer:
                if answer.status == wanted:
                    break
            await asyncio.sleep(0.1)
    return time.monotonic() - began


SEED = 61260
WALLED = "tests.system.walled_serve"


@pytest.mark.proof
@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_a_wall_clock_that_jumps_neither_storms_nor_stalls(engine: Engine) -> None:
    told = await run_clock_jumps(engine, SEED)
    assert told["pass"], told


@pytest.mark.proof
@pytest.mark.timeout(300)
async def test_deliveries_due_by_the_wall_clock_are_seen() -> None:
    told = await run_clock_jumps("sqlite", SEED, module=WALLED, patience=4.0)
    assert any("attempts" in finding for finding in told["findings"]), told
