"""A receiver that answers late, beside many that hang: its waiting, and its effect on the others.

60 percent of 10,000 webhooks hang. One more owner has a webhook whose receiver answers 200 after
two seconds. Its twenty events a second come in every other phase of one run. `waiting` counts its
events that have not reached the receiver, in each tenth of a second after the first minute.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_right
from pathlib import Path

from tests.benchmarks.children import child
from tests.benchmarks.engines import fresh
from tests.benchmarks.figures import Verdict, in_ms, quantile
from tests.benchmarks.hanging import (
    PER_OWNER,
    Arrived,
    Site,
    lines,
    now_ms,
    owner_of,
    settle_in,
)
from tests.benchmarks.sizes import Size
from tests.benchmarks.staging import Stage

SHARE = 60
SLOW_OWNER = "e" * 24
SLOW_MS = 2_000
A_SECOND = 20.0
MOST_WAITING = 60
OF_WITHOUT = 1.5
PAIRS = 2
STEP_MS = 100


async def slow_receivers(size: Size) -> Verdict:
    """Compare the others' p99 with and without the slow receiver, and count what waits for it."""
    verdict = Verdict("slow_receivers")
    verdict.figures["webhooks"] = size.webhooks
    for engine in size.engines:
        with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name:
            folder = Path(name)
            log = folder / "children.log"
            with child("tests.benchmarks.receiver", "record", log=log) as receiver:
                async with fresh(engine, folder) as stage:
                    site = _Site(folder, receiver.json()["port"], size, stage)
                    await site.stage()
                    await site.compare(verdict, engine)
    return verdict


class _Site(Site):
    """All webhooks in a database of either engine, which only one run uses."""

    def __init__(self, folder: Path, port: int, size: Size, stage: Stage) -> None:
        super().__init__(folder, port, size, stage)
        self._slow: dict[str, int] = {}
        """When each event for the slow receiver reached it, in milliseconds."""

    async def stage(self) -> None:
        await super().stage()
        url = f"http://127.0.0.1:{self.port}/after/{SLOW_MS}/slow"
        async with self.template.opened() as db:
            await db.write(settle_in, SLOW_OWNER, [url], self.template.ring())

    async def report(self) -> list[tuple[str, str, int]]:
        rows = await super().report()
        self._slow |= {e: at // 1000 for path, e, at in rows if path.startswith("/after/")}
        return rows

    async def compare(self, verdict: Verdict, engine: str) -> None:
        below = self.size.webhooks * SHARE // 100
        await self.ask(f"hang/{below}")
        arrived = {False: Arrived(), True: Arrived()}
        waiting: list[int] = []
        running = self.started()
        try:
            async with lines(running) as write:
                for first in range(0, self.size.webhooks, PER_OWNER):
                    write(owner_of(first), "all.made")
                await self.until(self.size.webhooks - below)
                await self.load(write, self.size.hanging_warm_up, below)
                for _ in range(PAIRS):
                    arrived[False].add(await self.measured(write, below))
                    began = now_ms()
                    warm_up = self.size.hanging_warm_up * 4
                    await self.load(write, warm_up, below, A_SECOND, SLOW_OWNER)
                    steady = now_ms()
                    arrived[True].add(await self.measured(write, below, A_SECOND, SLOW_OWNER))
                    ended = steady + round(self.size.hanging_seconds * 1000)
                    waiting += self._waiting(began, steady, ended)
        finally:
            running.kill()
        without, beside = (quantile(a.micros, 0.99) for a in arrived.values())
        verdict.figures[f"{engine}_slow_events"] = len(self._slow)
        verdict.figures[f"{engine}_others_p99_without_ms"] = in_ms(without)
        verdict.figures[f"{engine}_others_p99_ms"] = in_ms(beside)
        verdict.at_most(f"{engine}_others_p99_of_without", beside / without, OF_WITHOUT)
        verdict.at_most(f"{engine}_most_waiting", max(waiting, default=0), MOST_WAITING)
        if not waiting:
            verdict.broken.append(f"{engine}: nothing reached the slow receiver")

    def _waiting(self, began: int, steady: int, ended: int) -> list[int]:
        """Return how many written events had not arrived at each moment since `steady`."""
        mine = [(int(e[:12], 16), at) for e, at in self._slow.items() if int(e[:12], 16) >= began]
        arrivals = sorted(at for _, at in mine)
        # What never arrived counts as written too: the load writes at a steady pace.
        return [
            round((moment - began) * A_SECOND / 1000) - bisect_right(arrivals, moment)
            for moment in range(steady, ended, STEP_MS)
            if mine
        ]
