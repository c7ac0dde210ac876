"""A receiver that is down gets probes, then its backlog; nobody else waits (R9).

The owner of the failing webhook has a second one with the same events, which is paused meanwhile:
once activated, it shows how fast this backlog drains when nothing has failed. Other owners write
and receive all the time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from outbox.queue.state import circuits
from outbox.queue.upkeep import parking
from outbox.worker.windows import WIDEST
from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.support.ledger import Verdict, judge, query, read_rows, until_drained
from tests.support.load import Load
from tests.support.recipients import Receipt

SEED = 900
RATE, OTHERS_RATE = 100.0, 20.0
SECONDS, QUIET = 60.0, 30.0
RATIO = 0.8
"""The part of the usual rate at which the backlog must drain."""
SCHEDULE = "5,300,1800,7200,18000,36000,50400,72000,86400"
PATIENCE = 500.0
RESOLUTION_MS = 2.0
"""Two runs of the same load differ by this much."""
FAILING, PAUSED = "/owner0/hook0", "/owner0/hook1"
OCCURRED = "select id, occurred_at from events"
ATTEMPTS = "select kind, outcome from attempts where webhook_id = '{}'"
TRIED = "select count(*) from deliveries where webhook_id = '{}' and tries > 1"
WAITING = """
select count(*) from (select 1 from deliveries where webhook_id = '{}'
  and state = 'ready' and tries = 0 limit 50) as waiting
"""


class Uneven(Load):
    """Writers of which the first one writes most."""

    def owner(self) -> str:
        first, *others = self.tenants.keys
        mine = self.dice.random() < RATE / (RATE + OTHERS_RATE)
        return first if mine else self.dice.choice(others)


class Outage:
    """One outage, its moments (monotonic seconds), and what was received."""

    def __init__(self, site: Deployed) -> None:
        self.site = site
        self.failing, self.paused = next(iter(site.tenants.webhooks.values()))

    async def happen(self, quiet: float, seconds: float) -> None:
        there = self.site.there
        await self.site.run(parking.pause, self.paused)
        self.began = time.monotonic()
        await asyncio.sleep(quiet)
        self.down = time.monotonic()
        there.behave(down=[FAILING])
        await asyncio.sleep(seconds)
        self.up = time.monotonic()
        there.behave(down=[])
        await there.until(lambda got: self._answered_since(got, self.up), PATIENCE)
        await self._drained(self.failing)
        self.activated = time.monotonic()
        async with self.site.opened() as db:
            await parking.activate(db, self.paused, "all")
        await self._drained(self.paused)

    def _answered_since(self, got: Sequence[Receipt], moment: float) -> bool:
        # From the newest back: this is asked after each request.
        for receipt in reversed(got):
            if receipt.at < moment:
                return False
            if receipt.path == FAILING and receipt.answered is not None:
                return True
        return False

    async def _drained(self, webhook_id: str) -> None:
        """Wait until no delivery of a webhook is due for longer than a moment."""
        async with asyncio.timeout(PATIENCE):
            while (await query(self.site.url, WAITING.format(webhook_id)))[0][0] >= 50:
                await asyncio.sleep(0.2)

    async def judged(self, ratio: float) -> Verdict:
        site, got = self.site, self.site.there.got
        left = await until_drained(site.url, PATIENCE)
        answered = [receipt for receipt in got if receipt.answered is not None]
        rows = await read_rows(site.url)
        verdict = judge(f"R9 receiver down, {site.engine}", site.load, rows, answered)
        verdict.find(left, "events and deliveries unfinished")
        attempts = await query(site.url, ATTEMPTS.format(self.failing))
        failed = [kind for kind, outcome in attempts if outcome != "success"]
        # Those that were under way when the circuit opened are all that may come beside probes.
        most = circuits.FAILURES + WIDEST
        more = max(failed.count("event") - most, 0)
        verdict.find(more, "requests to the failing receiver that were no probes")
        verdict.find(not failed.count("probe"), "no probe was made")
        [(tried,)] = await query(site.url, TRIED.format(self.failing))
        verdict.find(tried > most, "deliveries that lost tries while they waited")
        self.mine = [receipt for receipt in got if receipt.path == FAILING]
        self.first = min(r.answered for r in self.mine if r.answered and r.answered >= self.up)
        offset = time.time() - time.monotonic()
        written = {one: at / 1e6 - offset for one, at in await query(site.url, OCCURRED)}
        drained, usual = self._rates(written)
        verdict.find(drained < ratio * usual, "the backlog drained too slowly")
        late = self._latencies(written)
        moved = late["down"] - late["quiet"]
        verdict.find(moved > max(0.1 * late["quiet"], RESOLUTION_MS), "others had to wait for it")
        widest = self._widest()
        verdict.find(widest > WIDEST, "more requests at once than a window has")
        verdict.figures |= {
            "failed_events": failed.count("event"), "probes": failed.count("probe"),
            "first_2xx_after_s": round(self.first - self.up, 1), "drained_per_s": round(drained),
            "usual_per_s": round(usual), "others_p99_ms": late, "at_once": widest,
        }  # fmt: skip
        return verdict

    def _rates(self, written: dict[str, float]) -> tuple[float, float]:
        """Return how fast what waited at the first 2xx went to either webhook."""
        usual = {r.event_id: r.at for r in self.site.there.got if r.path == PAUSED and r.answered}
        came = {r.event_id: r.at for r in self.mine if r.answered and r.answered >= self.up}
        both = [
            one
            for one in came.keys() & usual.keys()
            if self.down < written.get(one, self.first) < self.first
        ]
        return _rate([came[one] for one in both]), _rate([usual[one] for one in both])

    def _latencies(self, written: dict[str, float]) -> dict[str, float]:
        """Return the others' p99 from event to request, in milliseconds, by phase."""
        phases = {"quiet": (self.began + 1, self.down), "down": (self.down + 1, self.up),
                  "draining": (self.first, self.activated)}  # fmt: skip
        found = {}
        for name, (begin, end) in phases.items():
            times = sorted(
                (r.at - written[r.event_id]) * 1000 for r in self.site.there.got
                if not r.path.startswith("/owner0/") and begin <= written[r.event_id] < end
            )  # fmt: skip
            found[name] = round(times[int(len(times) * 0.99)], 1) if times else 0.0
        return found

    def _widest(self) -> int:
        """Return how many requests the failing receiver had at once."""
        steps = sorted(
            step for r in self.mine for step in ((r.at, 1), (r.answered or r.gone or r.at, -1))
        )
        most = now = 0
        for _, step in steps:
            now += step
            most = max(most, now)
        return most


def _rate(times: Sequence[float]) -> float:
    return len(times) / max(max(times) - min(times), 0.001) if times else 0.0


async def run_outage(
    engine: Engine, *, seconds: float = SECONDS, quiet: float = QUIET, schedule: str = SCHEDULE,
    broken: str = "", ratio: float = RATIO,
) -> Verdict:  # fmt: skip
    """Let a receiver fail for `seconds`, after `quiet` seconds without a fault."""
    settings = {"CARTEIRO_RETRY__SCHEDULE": schedule}
    async with deployed(
        engine, SEED, owners=5, webhooks=2, latency=(0.01, 0.02), broken=broken, settings=settings
    ) as site:
        site.load = Uneven(site.tenants, SEED)
        outage = Outage(site)
        async with site.writing(RATE + OTHERS_RATE):
            await outage.happen(quiet, seconds)
        return await outage.judged(ratio)


@ENGINES
async def test_a_minute_without_its_receiver(engine: Engine) -> None:
    (await run_outage(engine)).must_hold()


async def test_without_circuits_the_receiver_is_stormed() -> None:
    verdict = await run_outage(
        "sqlite", seconds=10, quiet=5, schedule="1,1,1,1,1,1,1,1,1", broken="no_circuits", ratio=0.0
    )
    assert any("no probes" in finding for finding in verdict.findings), verdict
