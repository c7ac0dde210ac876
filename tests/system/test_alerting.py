"""Each fault makes its alerts and no others, people are told of its cause, and all ends with it.

The rules are those of dashboards/, in a copy whose waits and windows are a twentieth: an hour takes
three minutes. Thresholds are the true ones.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import yaml

from tests.architecture.tree import ROOT
from tests.support.cluster import own_server
from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine
from tests.support.process import free_port
from tests.support.prometheus import RULES, Prometheus, configuration, prometheus, until_ready
from tests.support.requirements import need
from tests.support.volume import resize, shrink, tmpfs

CONFIG = ROOT / "dashboards" / "alertmanager.yml"


class Alertmanager:
    """The HTTP API of a running server at `address`, which is host and port."""

    def __init__(self, http: aiohttp.ClientSession, address: str) -> None:
        self._http = http
        self.address = address

    async def told(self) -> dict[str, str]:
        """Return the alerts of which people are told, with the severity of each."""
        async with self._http.get("/api/v2/alerts?inhibited=false") as response:
            found = [alert["labels"] for alert in await response.json()]
        return {labels["alertname"]: labels["severity"] for labels in found}


@asynccontextmanager
async def alertmanager(folder: Path) -> AsyncIterator[Alertmanager]:
    """Run Alertmanager, which keeps its data in `folder`."""
    address = f"127.0.0.1:{free_port()}"
    words = {
        "config.file": str(CONFIG), "storage.path": str(folder / "alertmanager"),
        "web.listen-address": address, "cluster.listen-address": "", "log.level": "warn",
    }  # fmt: skip
    with (folder / "alertmanager.log").open("wb") as log:
        process = subprocess.Popen(
            [need("alertmanager"), *(f"--{name}={value}" for name, value in words.items())],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            async with aiohttp.ClientSession(f"http://{address}") as http:
                server = Alertmanager(http, address)
                await until_ready(http)
                yield server
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait, 20)


SHORTER = 20
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
# The percentile of a few seconds would be the worst turn of the loop.
WHOLE = "instance:event_loop_lag_seconds:p99_5m"
DURATION = re.compile(r"(?<=\[)(\d+)([smhd])(?=\])")
RATE = 15.0
SETTLING_SECONDS = 20.0
# With the seconds before it more than a hundred turns of the loop, one a second, of which the
# slowest is then not the 99th percentile.
QUIET_SECONDS = 100.0
FAULT_SECONDS = 120.0
CLEAR_SECONDS = 240.0
FIRING = 'ALERTS{alertstate="firing"}'
# These end later than a run: the windows of one are hours, the other's is not shortened.
PASSING = 'ALERTS{alertstate="firing",alertname!~"OutboxLagBudgetTicket|EventLoopLag"}'
# As it is by default; the schedule of Product gives up within seconds.
SCHEDULE = "5,300,1800,7200,18000,36000,50400,72000,86400"
# A receiver that hangs has one request at a time, and ten that fail open its circuit.
TIMEOUT_SECONDS = "5"
SETTINGS = {
    "CARTEIRO_RETRY__SCHEDULE": SCHEDULE, "CARTEIRO_DELIVERY__TOTAL_SECONDS": TIMEOUT_SECONDS,
}  # fmt: skip


OWNERS = 6
# So large that the load does not fill it within six hours.
DISK_MIB = 8192
SILENCE = "no answer"


Act = Callable[[Deployed], Awaitable[None]]


@dataclass(frozen=True)
class Fault:
    """A fault, its end, and the alerts that it must make: no other may fire."""

    begin: Act
    end: Act
    alerts: frozenset[str]
    pages: frozenset[str] = frozenset()
    """Those that Alertmanager tells when it lasts: its cause alone."""
    may: frozenset[str] = frozenset()
    """Those that may fire beside, on a machine that is full with what the fault has held up."""
    says: str = '"ready"'
    """A part of what /readyz says meanwhile, which the runbook asks first."""
    engine: Engine = "sqlite"
    broken: str = ""


async def _nothing(site: Deployed) -> None:
    """Leave all as it is."""


async def _hang(site: Deployed) -> None:
    site.there.behave(hang=[f"/owner{number}/" for number in range(OWNERS // 2)])


async def _answer(site: Deployed) -> None:
    site.there.behave(release=True)


def _disk(site: Deployed) -> Path:
    return Path(site.url.removeprefix("sqlite:///")).parent


async def _fill_disk(site: Deployed) -> None:
    await asyncio.to_thread(shrink, _disk(site))


async def _free_disk(site: Deployed) -> None:
    await asyncio.to_thread(resize, _disk(site), f"{DISK_MIB}m")


async def _stop_database(site: Deployed) -> None:
    assert site.cluster is not None
    await site.cluster.crash()


async def _start_database(site: Deployed) -> None:
    assert site.cluster is not None
    await site.cluster.start()


def _send(number: signal.Signals) -> Act:
    async def send(site: Deployed) -> None:
        site.product.send(number)

    return send


REFUSING = {"DbErrors", "ApiErrorBudgetFast", "ApiErrorBudgetSlow"}
ASTRAY = {"ClockSkew", "ClockAstray"}
# Events that are stored meanwhile are sent afterwards, too late.
LATE = {"OutboxLagBudgetFast"}
# A request waits for the database before its 503, and new connections take time of the loop.
MAY_BE_SLOW = frozenset({"ApiLatencyBudget", "EventLoopLag"})
# What waited is sent within seconds, so the alerts with longer windows follow or do not.
MAY_BE_LATE = MAY_BE_SLOW | {"OutboxLagBudgetSlow", "OutboxLagBudgetTicket"}
FAULTS = {
    "nothing": Fault(_nothing, _nothing, frozenset()),
    "receivers hang": Fault(_hang, _answer, frozenset({"WebhookCircuitsOpen"})),
    "disk full": Fault(
        _fill_disk, _free_disk, frozenset(REFUSING | {"DiskFillsIn6h"}), frozenset({"DbErrors"}),
        says="disk full",
    ),
    "PostgreSQL stopped": Fault(
        _stop_database, _start_database,
        frozenset(REFUSING | {"OutboxSchedulerDead", "OutboxLeaderMissing"}),
        frozenset({"DbErrors"}), MAY_BE_SLOW, "the database is not available", "postgres",
    ),
    "process stopped": Fault(
        _send(signal.SIGSTOP), _send(signal.SIGCONT),
        frozenset({"TargetDown"}), frozenset({"TargetDown"}), says=SILENCE,
    ),
    "clock an hour off": Fault(
        _send(signal.SIGUSR1), _send(signal.SIGUSR1), frozenset(ASTRAY), frozenset({"ClockAstray"}),
        broken="astray_clock",
    ),
    "clock an hour off, PostgreSQL": Fault(
        _send(signal.SIGUSR1), _send(signal.SIGUSR1),
        frozenset(ASTRAY | {"OutboxSchedulerDead"} | LATE),
        frozenset({"ClockAstray"}), MAY_BE_LATE | {"OutboxStalled"}, "this node's clock differs",
        "postgres", "astray_clock",
    ),
}  # fmt: skip


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
async def _site(fault: Fault) -> AsyncIterator[tuple[Deployed, Prometheus, Alertmanager]]:
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="carteiro-alerts-")))
        disk, cluster = stack.enter_context(tmpfs(home, DISK_MIB)), None
        url = f"sqlite:///{disk / 'carteiro.db'}"
        if fault.engine == "postgres":
            cluster = await stack.enter_async_context(own_server())
            url = cluster.url
        site = await stack.enter_async_context(
            deployed(
                fault.engine, 3, url=url, owners=OWNERS, broken=fault.broken, settings=SETTINGS,
            )
        )  # fmt: skip
        site.cluster = cluster
        config = configuration(home, [f"127.0.0.1:{site.product.port}"], 1)
        for name in ("recording.yml", "alerts.yml"):
            (home / name).write_text(shortened((home / name).read_text()))
        pager = await stack.enter_async_context(alertmanager(home))
        receivers = [{"static_configs": [{"targets": [pager.address]}]}]
        told = yaml.safe_load(config.read_text()) | {"alerting": {"alertmanagers": receivers}}
        config.write_text(yaml.safe_dump(told))
        yield site, await stack.enter_async_context(prometheus(config)), pager


@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_makes_its_alerts_and_no_others(name: str) -> None:
    """It begins under load and is mended; then no alert fires any more."""
    fault = FAULTS[name]
    async with _site(fault) as (site, server, pager), site.writing(RATE):
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
            status, said = await site.product.get("/readyz", seconds=10)
        finally:
            await fault.end(site)
        mended = time.time()
        over = await _until_clear(server, mended)
        fired = await _fired(server, began, broken)
    print(json.dumps({"fault": name, "fired_after_s": fired, "told": told, "over_after_s": over}))
    assert not early, "alerts before the fault"
    assert fault.alerts <= set(fired) <= fault.alerts | fault.may
    assert _pages(told) == fault.pages
    assert fault.says in (said if status else SILENCE)
    assert over is not None, "alerts still fire after the end of the fault"


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
