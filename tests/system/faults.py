"""Faults: how each begins and ends, and the alerts, pages and readiness that it must make."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.cluster import Cluster
from tests.support.load import Load
from tests.support.product import Product
from tests.support.recipients import Recipients
from tests.support.volume import resize, shrink

OWNERS = 6
# So large that the load does not fill it within six hours.
DISK_MIB = 8192
SILENCE = "no answer"


@dataclass
class Site:
    """A gateway under load, and what a fault may touch."""

    product: Product
    there: Recipients
    load: Load
    disk: Path
    cluster: Cluster | None


Act = Callable[[Site], Awaitable[None]]


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
    engine: str = "sqlite"
    module: str = "gateway"


async def _nothing(site: Site) -> None:
    """Leave all as it is."""


async def _hang(site: Site) -> None:
    site.there.behave(hang=[f"/owner{number}/" for number in range(OWNERS // 2)])


async def _answer(site: Site) -> None:
    site.there.behave(release=True)


async def _fill_disk(site: Site) -> None:
    await asyncio.to_thread(shrink, site.disk)


async def _free_disk(site: Site) -> None:
    await asyncio.to_thread(resize, site.disk, f"{DISK_MIB}m")


async def _stop_database(site: Site) -> None:
    assert site.cluster is not None
    await site.cluster.crash()


async def _start_database(site: Site) -> None:
    assert site.cluster is not None
    await site.cluster.start()


async def _freeze(site: Site) -> None:
    site.product.send(signal.SIGSTOP)


async def _thaw(site: Site) -> None:
    site.product.send(signal.SIGCONT)


async def _turn_clock(site: Site) -> None:
    site.product.send(signal.SIGUSR1)


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
        _freeze, _thaw, frozenset({"TargetDown", "OutboxSchedulerDead"}), frozenset({"TargetDown"}),
        says=SILENCE,
    ),
    "clock an hour off": Fault(
        _turn_clock, _turn_clock, frozenset(ASTRAY), frozenset({"ClockAstray"}),
        module="tests.system.astray_serve",
    ),
    "clock an hour off, PostgreSQL": Fault(
        _turn_clock, _turn_clock, frozenset(ASTRAY | {"OutboxSchedulerDead"} | LATE),
        frozenset({"ClockAstray"}), MAY_BE_LATE, "this node's clock differs", "postgres",
        "tests.system.astray_serve",
    ),
}  # fmt: skip
