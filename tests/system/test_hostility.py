"""All hostile receivers at once: their attempts end by name, and nobody else waits.

tests/outbox/sending/test_receivers_hostile.py has them one at a time.

Five hundred webhooks of ten owners go to the modes of `tests.support.hostile_house`. As many of ten
other owners go to a receiver that is fine, which is what the run is compared with.
"""

from __future__ import annotations

import asyncio
import os
import re
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
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
from tests.support.faults import ENGINES, sizes
from tests.support.hostile_house import FINE, House, hostile_house, modes
from tests.support.ledger import Verdict, query
from tests.support.load import Load
from tests.support.tenants import Tenants, move_in

OWNERS = 10
PER_OWNER = 50
RATE = 50.0
THEIR_RATE = 1.0
WARM_WRITES = 50
OF_NONE = 1.5
COST_OF_NONE = 3.0
"""They keep no connection, some speak TLS, some say 64 KiB before they are cut."""
WITHIN_MS = 1_000.0
NOISE_MS = 300.0
LAG_MS = 50.0
QUIET_SHARE = 0.05
"""Above this share of a phase, the loop waited for a processor: its times tell of the machine."""
MORE_MIB = 64.0
SETTLED_SECONDS = 40.0

LATENCIES = """
select (a.started_at + a.total_us - e.occurred_at) / 1000.0, e.occurred_at
from attempts a join events e on e.id = a.event_id join webhooks w on w.id = a.webhook_id
where w.url like '%/owner%' and a.outcome = 'success'
"""
OUTCOMES = """
select a.url, a.outcome, count(*) from attempts a join webhooks w on w.id = a.webhook_id
where w.url not like '%/owner%' group by a.url, a.outcome
"""
ATTEMPTS = "select count(*) from attempts where started_at >= {}"
GONE = "select count(*) from webhooks where state = 'disabled' and disabled_reason is not null"


@dataclass
class _Phase:
    """What the healthy owners met while others had their events."""

    writes: list[float]
    deliveries: list[float]
    lag_ms: float
    rss: float
    seconds: float
    cpu_ms: float
    """Processor time of the product by attempts."""
    queued_seconds: float
    """How long the loop's thread was ready to run and waited for a processor."""


async def run_hostility(engine: Engine, seed: int, *, seconds: float = 20.0) -> dict[str, Any]:
    """Write for `seconds` beside fine receivers, then beside hostile ones; return the record."""
    # As few attempts as in the run that this is compared with.
    settings = {"CARTEIRO_RETRY__SCHEDULE": "60"}
    async with (
        hostile_house() as house,
        deployed(engine, seed, started=False, settings=settings) as site,
    ):
        fine = Load(await _owners_of(site, house, 1_000, [FINE]), seed + 1)
        names = [name for name in modes() if name != FINE]
        bad = Load(await _owners_of(site, house, 2_000, names), seed + 2)
        await site.product.start()
        async with site.load.writing(site.product.address, rate=RATE):
            await site.more(WARM_WRITES)
        none = await _phase(site, fine, seconds)
        beside = await _phase(site, bad, seconds)
        verdict = await site.verdict("all hostile receivers", strangers=True)
        found = await query(site.url, OUTCOMES)
        [(gone,)] = await query(site.url, GONE)
    _compare(verdict, none, beside)
    met = _outcomes(verdict, house, found)
    verdict.find(not gone, "no webhook was disabled by its 410")
    verdict.figures |= {"modes": len(names), "attempts": met, "disabled": gone, "seconds": seconds}
    return verdict.told()


async def _owners_of(site: Deployed, house: House, first: int, names: Sequence[str]) -> Tenants:
    """Create ten owners with fifty webhooks each, which take turns at these modes."""
    tenants = Tenants(site.load.tenants.key_file)
    ring = read_key_file(tenants.key_file, Ids())
    db = await database.open(site.url, clock=SystemClock(), ids=Ids())
    try:
        for number in range(OWNERS):
            places = [
                f"{house.urls[names[(number * PER_OWNER + n) % len(names)]]}/{number}/{n}"
                for n in range(PER_OWNER)
            ]
            await db.write(move_in, tenants, Ids(), ring, first + number, places)
    finally:
        await db.close()
    return tenants


async def _phase(site: Deployed, others: Load, seconds: float) -> _Phase:
    first, before = SystemClock().wall(), len(site.load.milliseconds)
    lags = await asyncio.to_thread(_lags, site)
    spent, queued = _cpu_seconds(site), site.product.queued_seconds()
    async with others.writing(site.product.address, rate=THEIR_RATE):
        await others.until_sent(2)
        async with site.load.writing(site.product.address, rate=RATE):
            await site.load.until_sent(
                site.load.count + round(RATE * seconds), seconds=seconds * 3 + 60
            )
            rss = site.product.rss()
        lag = _quantile_of(lags, await asyncio.to_thread(_lags, site), 0.99)
        await site.until_own(SETTLED_SECONDS)
    rows = await query(site.url, LATENCIES)
    [(attempts,)] = await query(site.url, ATTEMPTS.format(first))
    return _Phase(
        site.load.milliseconds[before:],
        [float(ms) for ms, at in rows if at >= first],
        lag * 1000,
        max(rss, site.product.rss()),
        (SystemClock().wall() - first) / 1e6,
        (_cpu_seconds(site) - spent) * 1000 / attempts,
        site.product.queued_seconds() - queued,
    )


def _cpu_seconds(site: Deployed) -> float:
    """Return the processor time of the product so far."""
    words = Path(f"/proc/{site.product.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _lags(site: Deployed) -> dict[float, float]:
    """Return the buckets of the event loop's delay."""
    with urllib.request.urlopen(f"{site.product.address}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    found = re.findall(r'^event_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)$', text, re.MULTILINE)
    assert found, "there are no delays of the loop on the metrics page"
    return {float(bound): float(count) for bound, count in found}


def _quantile_of(before: dict[float, float], after: dict[float, float], share: float) -> float:
    """Return the upper bound of the bucket that holds this share of what came in between."""
    counts = {bound: after[bound] - before.get(bound, 0.0) for bound in sorted(after)}
    total = counts[max(counts)]
    return next(bound for bound, count in counts.items() if count >= share * total)


def _compare(verdict: Verdict, none: _Phase, beside: _Phase) -> None:
    quiet = beside.queued_seconds < QUIET_SHARE * beside.seconds
    for what, alone, together in (
        ("write", none.writes, beside.writes),
        ("delivery", none.deliveries, beside.deliveries),
    ):
        before, after = quantile(alone, 0.99), quantile(together, 0.99)
        verdict.figures |= {
            f"{what}_none_p99_ms": round(before, 1), f"{what}_p99_ms": round(after, 1)
        }  # fmt: skip
        late = after > max(OF_NONE * before, before + NOISE_MS) or after > WITHIN_MS
        verdict.find(
            quiet and late,
            f"the p99 of a {what} is {after:.0f} ms beside them and {before:.0f} ms without",
        )
    lagging = beside.lag_ms > max(LAG_MS, none.lag_ms)
    verdict.find(quiet and lagging, f"the loop's p99 delay is {beside.lag_ms:.0f} ms")
    verdict.find(
        beside.cpu_ms > COST_OF_NONE * none.cpu_ms,
        f"an attempt takes {beside.cpu_ms:.2f} ms of processor time, without {none.cpu_ms:.2f}",
    )
    verdict.find(beside.rss - none.rss > MORE_MIB, f"it takes {beside.rss:.0f} MiB of memory")
    verdict.figures |= {
        "lag_p99_ms": beside.lag_ms, "lag_none_p99_ms": none.lag_ms,
        "cpu_of_none": round(beside.cpu_ms / none.cpu_ms, 2),
        "quiet": quiet, "queued_s": round(beside.queued_seconds, 1),
        "more_mib": round(beside.rss - none.rss, 1),
    }  # fmt: skip


def _outcomes(verdict: Verdict, house: House, found: Sequence[Any]) -> int:
    """Compare the outcomes of each mode with those that it may have; return their number."""
    expected = modes()
    by_place = {_place(url): name for name, url in house.urls.items()}
    met = set()
    total = 0
    for url, outcome, count in found:
        name = by_place[_place(url)]
        met.add(name)
        total += count
        allowed = expected[name].outcomes
        # A slow send too many is cut, and so is one at a webhook that was disabled meanwhile.
        cut = outcome == "aborted" or (outcome == "timeout" and allowed & {"success"})
        verdict.find(count if outcome not in allowed and not cut else 0, f"{name}: {outcome}")
    verdict.find(len(expected) - len(met), f"modes without an attempt: {set(expected) - met}")
    return total


def _place(url: str) -> str:
    return url.split("/")[2]


SEED = 71260


@pytest.mark.timed
@sizes("seconds", large=300.0)
@ENGINES
async def test_all_hostile_receivers_at_once_hold_up_nobody_else(
    engine: Engine, seconds: float
) -> None:
    told = await run_hostility(engine, SEED, seconds=seconds)
    assert told["pass"], told
