"""Each fault makes its alerts and no others, people are told of its cause, and all ends with it.

The rules are those of dashboards/, in a copy whose waits and windows are a twentieth: an hour takes
three minutes. Thresholds are the true ones.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from tests.support.alertmanager import Alertmanager, alertmanager
from tests.support.cluster import Cluster
from tests.support.load import Load
from tests.support.product import Product
from tests.support.prometheus import RULES, Prometheus, configuration, prometheus
from tests.support.recipients import recipients
from tests.support.tenants import settle_in
from tests.support.volume import tmpfs
from tests.system.faults import DISK_MIB, FAULTS, OWNERS, SILENCE, Fault, Site

SHORTER = 20
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
# The percentile of a few seconds would be the worst turn of the loop.
WHOLE = "instance:event_loop_lag_seconds:p99_5m"
DURATION = re.compile(r"(?<=\[)(\d+)([smhd])(?=\])")
RATE = 15.0
SETTLING_SECONDS = 20.0
QUIET_SECONDS = 45.0
FAULT_SECONDS = 120.0
CLEAR_SECONDS = 240.0
FIRING = 'ALERTS{alertstate="firing"}'
# These end later than a run: the windows of one are hours, the other's is not shortened.
PASSING = 'ALERTS{alertstate="firing",alertname!~"OutboxLagBudgetTicket|EventLoopLag"}'
# As it is by default; the schedule of Product gives up within seconds.
SCHEDULE = "5,300,1800,7200,18000,36000,50400,72000,86400"


def shortened(text: str) -> str:
    """Return rules with every wait and window but one divided by SHORTER, in whole seconds."""

    def less(found: re.Match[str]) -> str:
        return f"{max(int(found[1]) * UNITS[found[2]] // SHORTER, 3)}s"

    rules = yaml.safe_load(text)
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        if rule.get("record") != WHOLE:
            rule["expr"] = DURATION.sub(less, rule["expr"])
        if "for" in rule:
            rule["for"] = DURATION.sub(less, f"[{rule['for']}]").strip("[]")
    return str(yaml.safe_dump(rules))


@asynccontextmanager
async def _site(fault: Fault, seed: int) -> AsyncIterator[tuple[Site, Prometheus, Alertmanager]]:
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="carteiro-alerts-")))
        home.chmod(0o755)
        disk, cluster = stack.enter_context(tmpfs(home, DISK_MIB)), None
        url = f"sqlite:///{disk / 'carteiro.db'}"
        if fault.engine == "postgres":
            cluster = Cluster(home / "data")
            stack.push_async_callback(cluster.close)
            await cluster.create()
            await cluster.start()
            url = cluster.url
        there = await stack.enter_async_context(recipients(OWNERS, seed=seed, latency=(0, 0.02)))
        tenants = await settle_in(url, home, there.ports, owners=OWNERS)
        product = Product(
            home, url, tenants.key_file, module=fault.module,
            environment={"CARTEIRO_RETRY__SCHEDULE": SCHEDULE},
        )  # fmt: skip
        stack.push_async_callback(product.close)
        await product.start()
        config = configuration(home, [f"127.0.0.1:{product.port}"], 1)
        for name in ("recording.yml", "alerts.yml"):
            (home / name).write_text(shortened((home / name).read_text()))
        pager = await stack.enter_async_context(alertmanager(home))
        receivers = [{"static_configs": [{"targets": [pager.address]}]}]
        told = yaml.safe_load(config.read_text()) | {"alerting": {"alertmanagers": receivers}}
        config.write_text(yaml.safe_dump(told))
        server = await stack.enter_async_context(prometheus(config))
        yield Site(product, there, Load(tenants, seed), disk, cluster), server, pager


async def run_fault(name: str, seed: int) -> dict[str, Any]:
    """Make one fault under load, mend it, and wait until no alert fires; return the record."""
    fault = FAULTS[name]
    async with (
        _site(fault, seed) as (site, server, pager),
        site.load.writing(site.product.address, rate=RATE),
    ):
        # Until the first scrape nobody reports a delivery loop, and the wait is three seconds here.
        await asyncio.sleep(SETTLING_SECONDS)
        began = time.time()
        await asyncio.sleep(QUIET_SECONDS)
        early = await _fired(server, began, began)
        broken = time.time()
        await fault.begin(site)
        try:
            await asyncio.sleep(FAULT_SECONDS)
            told = await pager.told()
            said = await _readiness(site.product.address)
        finally:
            await fault.end(site)
        mended = time.time()
        over = await _until_clear(server, mended)
        fired = await _fired(server, began, broken)
    found = set(fired)
    findings = [f"{alert} fired before the fault" for alert in early]
    findings += [f"{alert} did not fire" for alert in sorted(fault.alerts - found)]
    findings += [f"{alert} fired" for alert in sorted(found - fault.alerts - fault.may)]
    findings += [f"a page for {alert}, or none" for alert in _pages(told) ^ fault.pages]
    findings += [] if fault.says in said else [f"/readyz says {said}"]
    findings += [] if over is not None else ["alerts still fire after the end of the fault"]
    return {
        "pass": not findings,
        "findings": findings,
        "fault": name,
        "engine": fault.engine,
        "fired_after_s": fired,
        "pages": sorted(_pages(told)),
        "tickets": sorted(told.keys() - _pages(told)),
        "readyz": said,
        "over_after_s": over,
        "writes": len(site.load.acked),
        "refused": len(site.load.refused),
    }


async def _readiness(address: str) -> str:
    """Return the body of /readyz, or that there is none."""
    timeout = aiohttp.ClientTimeout(total=10)
    try:
        async with aiohttp.ClientSession(address, timeout=timeout) as http:
            async with http.get("/readyz") as response:
                return await response.text()
    except (aiohttp.ClientError, TimeoutError):
        return SILENCE


def _pages(told: dict[str, str]) -> set[str]:
    return {alert for alert, severity in told.items() if severity == "page"}


async def _fired(server: Prometheus, start: float, since: float) -> dict[str, int]:
    """Return the alerts that have fired since `start`, with the seconds from `since`."""
    first: dict[str, int] = {}
    for series in await server.over(FIRING, start, time.time(), 1):
        alert, at = series["metric"]["alertname"], round(float(series["values"][0][0]) - since)
        first[alert] = min(first.get(alert, at), at)
    return dict(sorted(first.items(), key=lambda pair: pair[1]))


async def _until_clear(server: Prometheus, since: float) -> int | None:
    """Wait until no alert fires; return the seconds, None when one still does at the end."""
    # An alert may still be about to fire, so silence must last.
    quiet = time.time()
    while time.time() - since < CLEAR_SECONDS:
        if await server.instant(PASSING, time.time()):
            quiet = time.time()
        elif time.time() - quiet > 20:
            return round(quiet - since)
        await asyncio.sleep(1)
    return None


def test_the_copy_has_the_true_thresholds() -> None:
    text = (RULES / "alerts.yml").read_text()
    copy = yaml.safe_load(shortened(text))
    rules = {rule["alert"]: rule for group in copy["groups"] for rule in group["rules"]}
    assert rules["OutboxStalled"]["expr"] == "job:outbox_oldest_ready_age_seconds:max > 60"
    assert rules["OutboxStalled"]["for"] == "6s"
    assert "(db_free_bytes[180s], 6 * 3600) < 0" in rules["DiskFillsIn6h"]["expr"]
    recorded = yaml.safe_load(shortened((RULES / "recording.yml").read_text()))
    [whole] = [r for g in recorded["groups"] for r in g["rules"] if r["record"] == WHOLE]
    assert "[5m]" in whole["expr"]


@pytest.mark.proof
@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_makes_its_alerts_and_no_others(name: str) -> None:
    told = await run_fault(name, seed=3)
    assert told["pass"], told
