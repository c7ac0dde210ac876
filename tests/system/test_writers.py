"""Two hundred writers on SQLite wait neither for a long reader nor for the checkpoint after it.

No checkpoint can end meanwhile, so the log grows by what is written; the next one writes all of it
into the file beside the writers. The product alone checkpoints (outbox.database.sqlite says why).
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from tests.benchmarks.figures import quantile
from tests.support.deployed import Deployed, deployed
from tests.support.waiting import in_time, until

SEED = 20_250
WRITES = 8_000
WRITERS = 200
EACH_PER_SECOND = 1.0
PHASES = (0.25, 0.75)
"""The reader comes after a quarter of the writes, and goes after three."""
P99_MS = 250.0
OF_BEFORE = 2.0
"""Or so many times the p99 before the reader, on a machine that is slower."""
WAL_MIB = 64.0
CHECKPOINT_MIB = 8.0
"""A checkpoint begins at 4 MiB."""
KIB_OF_A_WRITE = 160.0
"""What a write, its event, its delivery and its attempt add to the log, in small transactions."""
PATIENCE = 120.0
LOCKED = ("is locked", "db_busy")
MIB = 2**20
HEADER = 32
SEQUENCE = slice(12, 16)
COUNT = "select count(*), max(seq) from events"


@dataclass
class _Log:
    """The write-ahead log as others see it: its largest size, and how often it began anew."""

    path: Path
    size: float = 0.0
    most: float = 0.0
    begun: set[bytes] = field(default_factory=set)

    def look(self) -> None:
        """Read its size and the number in its header, which each new beginning raises."""
        with self.path.open("rb") as log:
            self.begun.add(log.read(HEADER)[SEQUENCE])
        self.size = self.path.stat().st_size / MIB
        self.most = max(self.most, self.size)

    async def watch(self) -> None:
        """Look until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(0.05)

    async def until_anew(self) -> bool:
        """Wait until it has begun anew; return whether it did."""
        self.look()
        before = len(self.begun)
        return await in_time(lambda: len(self.begun) > before, 10.0)


@dataclass
class _Run:
    """What one run has seen."""

    site: Deployed
    log: _Log
    writes: int
    usual_mib: float = 0.0
    phases: list[list[float]] = field(default_factory=list)
    """Milliseconds of writes before, beside and after the reader."""

    async def until(self, share: float) -> None:
        """Wait until this share of the writes is sent, and take their times."""
        await self.site.load.until_sent(round(self.writes * share), PATIENCE)
        known = sum(map(len, self.phases))
        self.phases.append(self.site.load.milliseconds[known:])


async def test_a_long_reader_holds_up_no_writer() -> None:
    """It is there for half of the writes."""
    async with _site(SEED) as (site, log):
        run = _Run(site, log, WRITES)
        async with _writing(site):
            await run.until(PHASES[0])
            run.usual_mib = log.most
            with closing(sqlite3.connect(_file(site).as_uri() + "?mode=ro", uri=True)) as reader:
                reader.execute("begin")
                first = reader.execute(COUNT).fetchone()
                log.look()
                before = set(log.begun)
                await run.until(PHASES[1])
                changed = first != reader.execute(COUNT).fetchone() or log.begun != before
            anew = await log.until_anew()
            await run.until(1.0)
        log.look()
        verdict = await site.verdict(f"{WRITERS} writers beside a reader")
        said = site.product.log.read_text()
    quiet, beside, after = (round(quantile(times, 0.99), 1) for times in run.phases)
    of_a_write = (log.most - run.usual_mib) * 1024 / len(run.phases[1])
    late = max(beside, after) > max(P99_MS, OF_BEFORE * quiet)
    verdict.find(len(site.load.refused), f"writes refused: {list(site.load.refused.values())[:3]}")
    verdict.find(len(site.load.broken), "writes without an answer")
    verdict.find(sum(map(said.count, LOCKED)), "lines of its log that tell of a lock")
    verdict.find(late, f"the p99 of writes: {quiet} ms, {beside} beside the reader, {after} after")
    verdict.find(run.usual_mib > WAL_MIB, f"the log had {run.usual_mib:.0f} MiB without a reader")
    verdict.find(log.size > WAL_MIB, f"the log has {log.size:.0f} MiB after the reader has gone")
    verdict.find(log.most <= CHECKPOINT_MIB, "the reader held up no checkpoint")
    verdict.find(of_a_write > KIB_OF_A_WRITE, f"each write took {of_a_write:.0f} KiB of the log")
    verdict.find(changed, "the reader's snapshot changed, or the log below it")
    verdict.find(not anew, "the log did not begin anew after the reader had gone")
    verdict.figures |= {
        "before_p99_ms": quiet, "beside_p99_ms": beside, "after_p99_ms": after,
        "usual_log_mib": round(run.usual_mib, 1), "log_mib": round(log.most, 1),
        "after_log_mib": round(log.size, 1), "kib_of_a_write": round(of_a_write, 1),
    }  # fmt: skip
    verdict.must_hold()


async def test_a_lock_that_reaches_clients_is_seen() -> None:
    """A stranger holds the lock of writers instead, as no command may: the negative control."""
    async with _site(SEED) as (site, _):
        async with _writing(site):
            await site.more(WRITERS)
            with closing(sqlite3.connect(_file(site), isolation_level=None)) as stranger:
                # Those who wait for a while are late, and those who wait for longer are refused.
                stranger.execute("begin immediate")
                await until(lambda: _late(site) >= WRITERS // 2)
                stranger.execute("rollback")
                await site.more(WRITERS)
                stranger.execute("begin immediate")
                await in_time(lambda: bool(site.load.refused), PATIENCE)
                stranger.execute("rollback")
            await site.more(WRITERS)
        verdict = await site.verdict(f"{WRITERS} writers beside a stranger's lock")
        said = site.product.log.read_text()
    assert site.load.refused
    assert sum(map(said.count, LOCKED))
    assert verdict.p99_ms > P99_MS
    assert (verdict.lost, verdict.unexpected) == (0, 0)


def _late(site: Deployed) -> int:
    """Return how many writes wait for longer than the bar."""
    now = time.monotonic()
    return sum((now - began) * 1000 > P99_MS for began in site.load.open.values())


@asynccontextmanager
async def _site(seed: int) -> AsyncIterator[tuple[Deployed, _Log]]:
    """Run the product on a file, and watch its log."""
    async with deployed("sqlite", seed, owners=20, webhooks=1) as site:
        log = _Log(Path(f"{_file(site)}-wal"))
        watching = asyncio.create_task(log.watch())
        try:
            yield site, log
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


def _file(site: Deployed) -> Path:
    return Path(site.url.removeprefix("sqlite:///"))


@asynccontextmanager
async def _writing(site: Deployed) -> AsyncIterator[None]:
    """Let each writer write once a second on a connection of its own while the block runs."""
    over = asyncio.Event()
    dice = random.Random(site.load.seed)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as http:
        first = [dice.uniform(0.0, 1.0 / EACH_PER_SECOND) for _ in range(WRITERS)]
        tasks = [asyncio.create_task(_write(site, http, over, wait)) for wait in first]
        try:
            yield
        finally:
            over.set()
            await asyncio.gather(*tasks)


async def _write(
    site: Deployed, http: aiohttp.ClientSession, over: asyncio.Event, wait: float
) -> None:
    due = time.monotonic() + wait
    while True:
        try:
            async with asyncio.timeout(max(due - time.monotonic(), 0.0)):
                await over.wait()
            return
        except TimeoutError:
            await site.load.write(http, site.product.address)
            due += 1.0 / EACH_PER_SECOND
