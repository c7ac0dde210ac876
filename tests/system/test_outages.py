"""A receiver that is down gets probes, then its backlog; nobody else waits (R9).

The owner of the failing webhook has a second one with the same events, which is paused meanwhile:
once activated, it shows how fast this backlog drains when nothing has failed. Other owners write
and receive all the time.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.ids import Ids
from outbox.queue.state import circuits
from outbox.queue.upkeep import parking
from outbox.worker.windows import WIDEST
from tests.support.engines import Engine, empty_database
from tests.support.faults import ENGINES, LARGE
from tests.support.ledger import judge, query, read_rows, until_drained
from tests.support.load import Load
from tests.support.product import Product
from tests.support.recipients import Receipt, Recipients, recipients
from tests.support.tenants import Tenants, settle_in

OTHERS = 4
OTHERS_RATE = 20.0
SCHEDULE = "5,300,1800,7200,18000,36000,50400,72000,86400"
LATENCY = (0.01, 0.02)
PATIENCE = 1000.0
"""More than the longest wait for a probe, which is 15 minutes, and than draining takes."""
RESOLUTION_MS = 2.0
"""Two runs of the same load differ by this much."""
FAILING, PAUSED = "/owner0/hook0", "/owner0/hook1"
OCCURRED = "select id, occurred_at from events"
ATTEMPTS = """
select a.number, a.kind, a.outcome, a.started_at from attempts a
where a.webhook_id = '{}' order by a.started_at, a.number
"""
DELIVERIES = "select tries, attempts, state from deliveries where webhook_id = '{}'"


class Uneven(Load):
    """Writers of which the first one writes most."""

    def __init__(self, tenants: Tenants, seed: int, rate: float) -> None:
        super().__init__(tenants, seed)
        self.first, *self.others = tenants.keys
        self.share = rate / (rate + OTHERS_RATE)

    def owner(self) -> str:
        return self.first if self.dice.random() < self.share else self.dice.choice(self.others)


async def run_outage(
    engine: Engine, seed: int, *, seconds: float, quiet: float, rate: float = 100.0,
    schedule: str = SCHEDULE, module: str = "gateway", ratio: float = 0.8,
) -> dict[str, Any]:  # fmt: skip
    """Let a receiver fail for `seconds`, after `quiet` seconds without a fault; return the record.

    `ratio`: the part of the usual rate at which the backlog must drain.
    """
    with tempfile.TemporaryDirectory(prefix="carteiro-outage-") as home:
        folder = Path(home)
        async with (
            empty_database(engine, folder) as url,
            recipients(OTHERS + 1, seed=seed, latency=LATENCY) as there,
        ):
            tenants = await settle_in(url, folder, there.ports, owners=OTHERS + 1, webhooks=2)
            await _steer(url, tenants, activate=False)
            product = Product(
                folder, url, tenants.key_file, module=module,
                environment={"CARTEIRO_RETRY__SCHEDULE": schedule},
            )  # fmt: skip
            try:
                await product.start()
                load = Uneven(tenants, seed, rate)
                outage = _Outage(url, tenants, there, product, load)
                async with load.writing(product.address, rate=rate + OTHERS_RATE):
                    await outage.happen(quiet, seconds)
                return await outage.judged(f"R9 receiver down, {engine}", seconds, ratio)
            finally:
                await product.close()


class _Outage:
    """One outage, its moments (monotonic seconds), and what was received."""

    def __init__(
        self, url: str, tenants: Tenants, there: Recipients, product: Product, load: Uneven
    ) -> None:
        self.url, self.tenants, self.there = url, tenants, there
        self.product, self.load = product, load
        first = tenants.webhooks[load.first]
        self.failing, self.paused = first[0], first[1]

    async def happen(self, quiet: float, seconds: float) -> None:
        self.began = time.monotonic()
        await asyncio.sleep(quiet)
        self.down = time.monotonic()
        self.there.behave(down=[FAILING])
        await asyncio.sleep(seconds)
        self.up = time.monotonic()
        self.there.behave(down=[])
        await self.there.until(lambda _: self._answered_since(self.up), PATIENCE)
        await self._drained(self.failing)
        self.activated = time.monotonic()
        await _steer(self.url, self.tenants, activate=True)
        await self._drained(self.paused)

    async def judged(self, fault: str, seconds: float, ratio: float) -> dict[str, Any]:
        left = await until_drained(self.url, PATIENCE)
        answered = [receipt for receipt in self.there.got if receipt.answered is not None]
        verdict = judge(
            fault, self.load, await read_rows(self.url), answered, rss=self.product.rss()
        )
        verdict.find(left, "events and deliveries unfinished")
        attempts = await query(self.url, ATTEMPTS.format(self.failing))
        kinds = [kind for _, kind, outcome, _ in attempts if outcome != "success"]
        # Those that were under way when the circuit opened are all that may come beside probes.
        verdict.find(
            max(kinds.count("event") - circuits.FAILURES - WIDEST, 0),
            "requests to the failing receiver that were no probes",
        )
        probes = kinds.count("probe")
        verdict.find(probes == 0, "no probe was made")
        rows = await query(self.url, DELIVERIES.format(self.failing))
        verdict.find(
            sum(tries > 1 for tries, _, _ in rows) > circuits.FAILURES + WIDEST,
            "deliveries that lost tries while they waited",
        )
        offset = time.time() - time.monotonic()
        self.written = {
            one: occurred / 1e6 - offset for one, occurred in await query(self.url, OCCURRED)
        }
        drained, usual = self._rates()
        verdict.find(drained < ratio * usual, "the backlog drained too slowly")
        late = self._latencies()
        moved = late["down"] - late["quiet"]
        verdict.find(moved > max(0.1 * late["quiet"], RESOLUTION_MS), "others had to wait for it")
        widest = self._widest()
        verdict.find(widest > WIDEST, "more requests at once than a window has")
        verdict.figures |= {
            "down_s": seconds,
            "failed_events": kinds.count("event"),
            "probes": probes,
            "first_2xx_after_s": round(self._first_2xx() - self.up, 1),
            "backlog": self.backlog,
            "drained_per_s": round(drained),
            "usual_per_s": round(usual),
            "drain_ratio": round(drained / usual, 2) if usual else 0.0,
            "others_p99_ms": late,
            "at_once": widest,
        }
        return verdict.told()

    def _of(self, path: str) -> list[Receipt]:
        return [receipt for receipt in self.there.got if receipt.path == path]

    def _answered_since(self, moment: float) -> bool:
        # From the newest back: this is asked after each request.
        for receipt in reversed(self.there.got):
            if receipt.at < moment:
                return False
            if receipt.path == FAILING and receipt.answered is not None:
                return True
        return False

    async def _drained(self, webhook_id: str) -> None:
        """Wait until no delivery of a webhook is due for longer than a moment."""
        text = f"""
        select count(*) from (select 1 from deliveries where webhook_id = '{webhook_id}'
          and state = 'ready' and tries = 0 limit 50) as waiting
        """
        async with asyncio.timeout(PATIENCE):
            while (await query(self.url, text))[0][0] >= 50:
                await asyncio.sleep(0.2)

    def _first_2xx(self) -> float:
        return min(r.answered for r in self._of(FAILING) if r.answered and r.answered >= self.up)

    def _rates(self) -> tuple[float, float]:
        """Return how fast the backlog of the outage went to the failing and the paused webhook."""
        mine = {r.event_id: r for r in self._of(PAUSED) if r.answered is not None}
        came = {r.event_id: r for r in self._of(FAILING) if r.answered and r.answered >= self.up}
        first = self._first_2xx()
        # What waited when the probe came through.
        ids = [
            one for one in came if one in mine and self.down < self.written.get(one, first) < first
        ]
        self.backlog = len(ids)
        return _rate([came[one].at for one in ids]), _rate([mine[one].at for one in ids])

    def _latencies(self) -> dict[str, float]:
        """Return the others' p99 from event to request, in milliseconds, by phase."""
        at = self.written
        phases = {"quiet": (self.began + 1, self.down), "down": (self.down + 1, self.up),
                  "draining": (self._first_2xx(), self.activated)}  # fmt: skip
        found = {}
        for name, (begin, end) in phases.items():
            times = sorted(
                (r.at - at[r.event_id]) * 1000 for r in self.there.got
                if not r.path.startswith("/owner0/") and begin <= at[r.event_id] < end
            )  # fmt: skip
            found[name] = round(times[int(len(times) * 0.99)], 1) if times else 0.0
        return found

    def _widest(self) -> int:
        """Return how many requests the failing receiver had at once."""
        steps = sorted(
            step for r in self._of(FAILING)
            for step in ((r.at, 1), (r.answered or r.gone or r.at, -1))
        )  # fmt: skip
        most = now = 0
        for _, step in steps:
            now += step
            most = max(most, now)
        return most


def _rate(times: Sequence[float]) -> float:
    return len(times) / max(max(times) - min(times), 0.001) if times else 0.0


async def _steer(url: str, tenants: Tenants, *, activate: bool) -> None:
    """Pause the second webhook of the first owner, or activate it with all that is parked."""
    webhook_id = tenants.webhooks[next(iter(tenants.keys))][1]
    db = await database.open(url, clock=SystemClock(), ids=Ids())
    try:
        if activate:
            await parking.activate(db, webhook_id, "all")
        else:
            await db.write(parking.pause, webhook_id)
    finally:
        await db.close()


SEED = 900


@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.timeout(300)
@ENGINES
async def test_a_receiver_that_is_down_gets_only_probes(engine: Engine) -> None:
    # Short, so most of the drain is the growth of the window.
    told = await run_outage(
        engine, SEED, seconds=6, quiet=6, rate=50.0, schedule="1,1,1,1", ratio=0.1
    )
    assert told["pass"], told


@pytest.mark.parametrize(
    ("engine", "seconds", "quiet"),
    [
        pytest.param("sqlite", 600.0, 120.0, marks=LARGE),
        pytest.param("postgres", 60.0, 60.0, marks=LARGE),
    ],
)
async def test_minutes_without_its_receiver(engine: Engine, seconds: float, quiet: float) -> None:
    told = await run_outage(engine, SEED, seconds=seconds, quiet=quiet)
    assert told["pass"], told


@pytest.mark.proof
@pytest.mark.timeout(300)
async def test_without_circuits_the_receiver_is_stormed() -> None:
    told = await run_outage(
        "sqlite", SEED, seconds=10, quiet=5, schedule="1,1,1,1,1,1,1,1,1",
        module="tests.system.undaunted_serve", ratio=0.0,
    )  # fmt: skip
    assert any("no probes" in finding for finding in told["findings"]), told
