"""Wall clocks that jump: nothing is sent early, late or twice.

On SQLite nothing is sent sooner or later for it. On PostgreSQL the server's clock decides, and a
node whose own clock is more than a minute off sends nothing until it is right again (R35).
"""

from __future__ import annotations

import asyncio
import mmap
import os
import struct
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp

from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine
from tests.support.ledger import Held, Verdict, query, until_drained
from tests.support.requirements import need
from tests.support.waiting import in_time

SOURCE = Path(__file__).with_name("shim.c")
WORDS = struct.Struct("=qqq")


class Shim:
    """The faults of the processes that have `environment`."""

    def __init__(self, library: Path, control: Path, words: mmap.mmap) -> None:
        self.environment = {"LD_PRELOAD": str(library), "SHIM_CONTROL": str(control)}
        self._words = words

    def set(self, *, ahead_seconds: int = 0, flush_seconds: float = 0.0) -> None:
        """Let the wall clock be this far ahead, and each flush take so long, from now on."""
        self._words[:16] = struct.pack("=qq", ahead_seconds, round(flush_seconds * 1e6))

    @property
    def flushes(self) -> int:
        """The flushes so far that took long."""
        return int(WORDS.unpack(self._words[: WORDS.size])[2])


@contextmanager
def shim(folder: Path) -> Iterator[Shim]:
    """Build the library in `folder`; there are no faults at first."""
    need("linux")
    library, control = folder / "shim.so", folder / "shim.control"
    subprocess.run(
        [need("gcc"), "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE), "-ldl"],
        check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    control.write_bytes(bytes(mmap.PAGESIZE))
    handle = os.open(control, os.O_RDWR)
    try:
        words = mmap.mmap(handle, mmap.PAGESIZE)
    finally:
        os.close(handle)
    with words:
        yield Shim(library, control, words)


SEED = 61260
HOUR, DAY = 3_600, 86_400
JUMPS = (2 * HOUR, -2 * HOUR, 30 * DAY, -30 * DAY)
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


@asynccontextmanager
async def _site(engine: Engine, broken: str = "") -> AsyncIterator[tuple[Deployed, Shim]]:
    with tempfile.TemporaryDirectory(prefix="carteiro-clock-") as home, shim(Path(home)) as faults:
        settings = faults.environment | SETTINGS
        async with deployed(engine, SEED, broken=broken, settings=settings) as site:
            yield site, faults


async def _on_sqlite(site: Deployed, faults: Shim, patience: float) -> Verdict:
    """Jump there and back during load, then restart while the clock is off."""
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
    return verdict


async def _fail_some(site: Deployed) -> Held:
    """Let some deliveries fail, and so wait for an hour; return them."""
    site.there.behave(status=500)
    async with aiohttp.ClientSession() as http:
        for _ in range(FAILED):
            await site.load.write(http, site.product.address)
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
    async with site.writing():
        await site.more(WRITES)
    written = time.monotonic()
    expected = (len(site.load.acked) - acked) * WEBHOOKS + due
    await in_time(lambda: len(site.there.got) - before >= expected, patience)
    waited = time.monotonic() - written
    # Whatever is too much comes now.
    await asyncio.sleep(1.5)
    return waited, (len(site.there.got) - before) / expected


async def test_a_node_that_is_off_sends_nothing() -> None:
    async with _site("postgres") as (site, faults):
        phases = {}
        for ahead in JUMPS:
            await _phase(site)
            faults.set(ahead_seconds=ahead)
            noticed = await _seconds_until(site, 503)
            before = len(site.there.got)
            async with site.writing():
                await site.more(WRITES)
            sent = len(site.there.got) - before
            faults.set()
            ready = await _seconds_until(site, 200)
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
    verdict.figures["noticed_s"] = round(max(found[0] for found in phases.values()), 2)
    verdict.must_hold()


async def _seconds_until(site: Deployed, wanted: int) -> float:
    """Return the seconds until /readyz says `wanted`."""
    began = time.monotonic()
    while time.monotonic() < began + 2 * NOTICED_SECONDS:
        if (await site.product.get("/readyz"))[0] == wanted:
            break
        await asyncio.sleep(0.1)
    return time.monotonic() - began


async def test_a_wall_clock_that_jumps_neither_storms_nor_stalls() -> None:
    async with _site("sqlite") as (site, faults):
        (await _on_sqlite(site, faults, 2 * WAIT_SECONDS)).must_hold()


async def test_deliveries_due_by_the_wall_clock_are_seen() -> None:
    async with _site("sqlite", "due_by_the_wall") as (site, faults):
        verdict = await _on_sqlite(site, faults, patience=4.0)
    assert any("attempts" in finding for finding in verdict.findings), verdict
