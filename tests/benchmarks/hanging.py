"""Many receivers that hang or respond late, and their effect on the others (R8).

Each run has its own database with 10,000 webhooks, fifty per owner, and a steady pace of events
spread evenly over them. Times run from the start of a write's transaction to the 200 of its
receiver. In runs with late receivers one additional owner has fifty webhooks that are fast until
the warm-up ends and then respond 200 after 28 seconds.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

from outbox import webhooks
from outbox.database.transaction import Tx
from outbox.ids import Ids
from outbox.sending.request import new_secret
from outbox.webhooks import Draft
from outbox.webhooks.secrets import KeyRing
from tests.benchmarks.children import Child, child
from tests.benchmarks.figures import Verdict, in_ms, quantile
from tests.benchmarks.idle_commit import arrivals
from tests.benchmarks.sizes import Size
from tests.benchmarks.staging import Stage

SHARES = (0, 1, 30, 60, 0)
"""Percent of the webhooks that hang; the reference runs come first and last."""
RESTARTED = (0, 60)
"""Runs that are killed and measured once more, right after their restart."""
OF_NONE = 1.5
WITHIN_MS = 1_000.0
THROUGHPUT = 0.95
PER_OWNER = 50
EVENTS_A_SECOND = 200.0
PER_WEBHOOK = 5.0
"""No webhook gets more than this per second, in small runs."""
SETTLE_SECONDS = 10.0
GRACE_SECONDS = 1.0
"""Seconds after the last write of a run for events that arrive in time."""
SPREAD = 37
"""Coprime to the number of webhooks, so that no order of ids or lanes separates those that hang."""
LATE_OWNER = "f" * 24
LATE_TIMEOUT_MS = 30_000
# Windows open to 27 with some 350 successes each: together they exceed the slots and the slow sends
# of a worker. Then a burst fills them at once.
OPENING_EVENTS = 360
OPENING_SECONDS = 60.0
BURST = 40
LATE_A_SECOND = 4.0


@dataclass
class Arrived:
    """The healthy events of one phase: their times, and how many were written."""

    written: int = 0
    in_time: int = 0
    micros: list[int] = field(default_factory=list)

    def add(self, other: Arrived) -> None:
        self.written += other.written
        self.in_time += other.in_time
        self.micros += other.micros


async def hanging(size: Size) -> Verdict:
    """Compare the healthy webhooks' p99 in each run with the run where none hangs."""
    verdict = Verdict("hanging")
    verdict.figures["webhooks"] = size.webhooks
    with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name:
        folder = Path(name)
        with child("tests.benchmarks.receiver", "record", log=folder / "children.log") as receiver:
            site = Site(folder, receiver.json()["port"], size)
            await site.stage()
            found: dict[str, Arrived] = {}
            for share in SHARES:
                async for phase, arrived in site.run(share):
                    found.setdefault(phase, Arrived()).add(arrived)
            for phase in ("late_none", "late_50"):
                found[phase] = await site.run_late(phase == "late_50")
    for phase, none in (
        *((f"hanging_{share}", "hanging_0") for share in dict.fromkeys(SHARES)),
        *((f"restarted_{share}", "restarted_0") for share in RESTARTED),
        ("late_none", "late_none"),
        ("late_50", "late_none"),
    ):
        _judge(verdict, phase, found[phase], found[none])
    return verdict


def _judge(verdict: Verdict, phase: str, arrived: Arrived, none: Arrived) -> None:
    if not arrived.micros or not none.micros:
        verdict.broken.append(f"{phase}: nothing arrived")
        return
    p99 = quantile(arrived.micros, 0.99)
    verdict.figures[f"{phase}_p50_ms"] = in_ms(quantile(arrived.micros, 0.5))
    verdict.at_most(f"{phase}_p99_ms", in_ms(p99), WITHIN_MS)
    verdict.at_least(f"{phase}_throughput", arrived.in_time / arrived.written, THROUGHPUT)
    if arrived is not none:
        verdict.at_most(f"{phase}_of_none", p99 / quantile(none.micros, 0.99), OF_NONE)


class Site:
    """A staged database, a receiver, and runs on copies of the database; or on `only`, uncopied."""

    def __init__(self, folder: Path, port: int, size: Size, only: Stage | None = None) -> None:
        self._folder = folder
        self.port = port
        self.size = size
        self.template = only or Stage(f"sqlite:///{folder}/template.db", folder)
        self._run = only or Stage(f"sqlite:///{folder}/run.db", folder)
        self._per_second = min(EVENTS_A_SECOND, size.webhooks * PER_WEBHOOK)
        self._next = 0

    async def stage(self) -> None:
        """Create all webhooks of all owners, once."""
        await self.template.prepare()
        url, ring = f"http://127.0.0.1:{self.port}", self.template.ring()
        late = [f"{url}/late/{n}" for n in range(PER_OWNER)]
        async with self.template.opened() as db:
            for first in range(0, self.size.webhooks, PER_OWNER):
                ranks = [self.rank(first + n) for n in range(PER_OWNER)]
                urls = [f"{url}/rank/{rank}" for rank in ranks]
                await db.write(settle_in, owner_of(first), urls, ring)
            await db.write(settle_in, LATE_OWNER, late, ring)

    def rank(self, number: int) -> int:
        """Return a rank; webhooks with a rank below the number of hanging ones hang."""
        return number * SPREAD % self.size.webhooks

    async def run(self, share: int) -> AsyncIterator[tuple[str, Arrived]]:
        """Run with `share` percent hanging: once warm, and in some cases once after a crash."""
        below = self.size.webhooks * share // 100
        await self.ask(f"hang/{below}")
        running = self.fresh()
        try:
            async with lines(running) as write:
                # One event for each webhook, so that those that hang do so from the start. All of
                # them need a slot for a second at once: the others wait in that queue, and the
                # measurement begins after it.
                before = await self.count()
                for first in range(0, self.size.webhooks, PER_OWNER):
                    write(owner_of(first), "all.made")
                await self.until(before + self.size.webhooks - below)
                await self.load(write, self.size.hanging_warm_up, below)
                yield f"hanging_{share}", await self.measured(write, below)
            if share in RESTARTED:
                running.kill()
                running = self.started()
                async with lines(running) as write:
                    yield f"restarted_{share}", await self.measured(write, below)
        finally:
            running.kill()

    async def run_late(self, late: bool) -> Arrived:
        """Run with one owner whose fifty webhooks have wide windows when they turn slow, or not."""
        await self.ask("hang/0")
        await self.ask("prompt")
        running = self.fresh()
        try:
            async with lines(running) as write:
                opening = min(OPENING_EVENTS, round(self.size.hanging_warm_up * 40))
                before = await self.count()
                for _ in range(opening):
                    write(LATE_OWNER, "all.made")
                await self.until(before + opening * PER_OWNER)
                await self.load(write, self.size.hanging_warm_up / 3, 0)
                if late:
                    await self.ask("late")
                for _ in range(BURST):
                    write(LATE_OWNER, "all.made")
                await self.load(write, self.size.hanging_warm_up, 0, LATE_A_SECOND)
                return await self.measured(write, 0, LATE_A_SECOND)
        finally:
            running.kill()

    def fresh(self) -> Child:
        for file in self._folder.glob("run.db*"):
            file.unlink()
        shutil.copyfile(self._folder / "template.db", self._folder / "run.db")
        return self.started()

    def started(self) -> Child:
        spec = {"url": self._run.url, "key_file": str(self._run.key_file)}
        return Child("tests.benchmarks.host", log=self._folder / "host.log", spec=spec)

    async def load(
        self, write: Write, seconds: float, below: int, late: float = 0.0,
        of_late: str = LATE_OWNER,
    ) -> int:  # fmt: skip
        """Write at a steady pace; return how many events were for healthy webhooks.

        `late` more events per second are of the owner `of_late`, to all of his webhooks.
        """
        loop = asyncio.get_running_loop()
        began = due = loop.time()
        healthy = lates = 0
        while due < began + seconds:
            await asyncio.sleep(due - loop.time())
            number = self._next * SPREAD % self.size.webhooks
            self._next += 1
            write(owner_of(number), f"n{number % PER_OWNER}.made")
            healthy += self.rank(number) >= below
            due += 1 / self._per_second
            if late and (due - began) * late > lates:
                lates += 1
                write(of_late, "all.made")
        return healthy

    async def measured(
        self, write: Write, below: int, late: float = 0.0, of_late: str = LATE_OWNER
    ) -> Arrived:
        """Return the healthy events of a load, when all have arrived or the time is over."""
        await self.report()
        began = now_ms()
        written = await self.load(write, self.size.hanging_seconds, below, late, of_late)
        ended = now_ms()
        mine: dict[str, int] = {}
        for _ in range(round(SETTLE_SECONDS / 0.2)):
            for path, event, at in await self.report():
                made = int(event[:12], 16)
                if path.startswith("/rank/") and made >= began:
                    mine.setdefault(event, at)
            if len(mine) >= written:
                break
            await asyncio.sleep(0.2)
        latest = (ended + GRACE_SECONDS * 1000) * 1000
        in_time = sum(at <= latest for at in mine.values())
        micros = [at - int(event[:12], 16) * 1000 for event, at in mine.items()]
        # Missing events count with the time that this run waited.
        micros += [round(SETTLE_SECONDS * 1_000_000)] * (written - len(mine))
        return Arrived(written, in_time, micros)

    async def report(self) -> list[tuple[str, str, int]]:
        """Return arrivals since the previous call: path, event id, wall microseconds."""
        return await asyncio.to_thread(arrivals, self.port)

    async def until(self, count: int) -> None:
        """Wait until the receiver has answered `count` requests. Raise TimeoutError."""
        async with asyncio.timeout(OPENING_SECONDS):
            while await self.count() < count:
                await asyncio.sleep(0.1)

    async def count(self) -> int:
        return int(json.loads(await self.ask("count"))["count"])

    async def ask(self, what: str) -> bytes:
        return await asyncio.to_thread(ask, f"http://127.0.0.1:{self.port}/{what}")


def ask(url: str) -> bytes:
    with urlopen(url, timeout=30) as answer:
        body: bytes = answer.read()
        return body


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def owner_of(webhook: int) -> str:
    return f"{webhook // PER_OWNER:024x}"


class Write:
    """Sends one event's line to the host."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def __call__(self, owner: str, name: str) -> None:
        self._writer.write(f"{owner} {name}\n".encode())


@asynccontextmanager
async def lines(host: Child) -> AsyncIterator[Write]:
    _, writer = await asyncio.open_connection("127.0.0.1", host.json()["port"])
    try:
        yield Write(writer)
    finally:
        writer.close()


async def settle_in(tx: Tx, owner: str, urls: Sequence[str], ring: KeyRing) -> None:
    """Create an owner's webhooks: each has its own event, and all share one."""
    ids = Ids()
    for number, url in enumerate(urls):
        draft = Draft(
            url=url,
            events=(f"n{number}.made", "all.made"),
            timeout_ms=LATE_TIMEOUT_MS if owner == LATE_OWNER else None,
        )
        secret = new_secret(ids.token(32))
        await webhooks.create(tx, owner_id=owner, draft=draft, secret=secret, ring=ring)
