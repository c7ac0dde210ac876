"""Kill -9 under load: no acknowledged write is lost, and only deliveries in flight repeat."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.engines import Engine, empty_database, state_after_kill
from tests.support.faults import ENGINES, shows, sizes
from tests.support.ledger import Held, Pair, Verdict, holes, judge, newly, read_rows, until_drained
from tests.support.load import Load
from tests.support.product import Product
from tests.support.recipients import Recipients, recipients
from tests.support.tenants import Tenants, settle_in

RECEIVERS = 20
RATE = 50.0
WRITES = (20, 80)
"""The kill comes at a write between these two of its round: 0.4 to 1.6 s of load."""
LATENCY = (0.0, 0.08)
"""Response time of a receiver in seconds: some sends are always in flight."""
ATTEMPTS_PER_ROUND = 16
"""A kill counts when it meets a write and a send; on SQLite that is about one in five."""
FIRST_ATTEMPT_SECONDS = 5.0
LEASE_SECONDS = 30.0


@dataclass
class Kill:
    """The state at one kill, and how the next start continued."""

    at: float
    writes: int
    sends: int
    in_flight: Held
    integrity: str
    restarted: float = 0.0
    started_seconds: float = 0.0

    @property
    def counts(self) -> bool:
        """A round counts when the kill interrupted a write and a send."""
        return self.writes > 0 and self.sends > 0


@dataclass
class _Run:
    url: str
    load: Load
    there: Recipients
    product: Product
    dice: random.Random
    kills: list[Kill] = field(default_factory=list)
    rss: float = 0.0


async def run_kills(
    rounds: int, engine: Engine, seed: int, *, module: str = "gateway"
) -> dict[str, Any]:
    """Make `rounds` valid kills, then the ledger over all of them; return the record.

    `module` is another entry point in place of the product: the negative control.
    """
    with tempfile.TemporaryDirectory(prefix="carteiro-kills-") as home:
        folder = Path(home)
        async with empty_database(engine, folder) as url:
            async with recipients(RECEIVERS, seed=seed, latency=LATENCY) as there:
                tenants = await settle_in(
                    url, folder, there.ports, owners=RECEIVERS, sequenced=True
                )
                run = _Run(
                    url,
                    Load(tenants, seed),
                    there,
                    Product(folder, url, tenants.key_file, module=module),
                    random.Random(seed),
                )
                try:
                    return await _rounds(run, rounds, engine)
                finally:
                    await run.product.close()


async def _rounds(run: _Run, rounds: int, engine: Engine) -> dict[str, Any]:
    await run.product.start()
    while sum(kill.counts for kill in run.kills) < rounds:
        if len(run.kills) == rounds * ATTEMPTS_PER_ROUND:
            break
        kill = await _kill(run)
        run.kills.append(kill)
        kill.restarted = time.monotonic()
        kill.started_seconds = round(await run.product.start(), 2)
    async with run.load.writing(run.product.address, rate=RATE):
        await run.load.until_sent(run.load.count + WRITES[0])
    # On PostgreSQL the last process's deliveries are rescued when its lease has expired.
    patience = 15.0 if engine == "sqlite" else LEASE_SECONDS + 15.0
    left = await until_drained(run.url, patience)
    verdict = judge(
        f"kill -9, {engine}",
        run.load,
        await read_rows(run.url),
        run.there.got,
        in_flight=[kill.in_flight for kill in run.kills],
        rss=run.rss,
    )
    _timings(verdict, run, run.load.tenants, engine)
    counted = sum(kill.counts for kill in run.kills)
    verdict.find(rounds - counted, "rounds that met no write or no send")
    verdict.find(left, "events and deliveries unfinished")
    verdict.find(await holes(run.url), "webhooks whose deliveries are not numbered 1 to n")
    verdict.find(sum(kill.integrity != "ok" for kill in run.kills), "files damaged")
    verdict.find(
        max(verdict.recovered - sum(kill.writes for kill in run.kills), 0),
        "writes recovered beyond those under way at a kill",
    )
    verdict.find(len(run.load.refused), "writes refused")
    verdict.figures |= {
        "rounds": counted,
        "kills": len(run.kills),
        "writes_cut": sum(kill.writes for kill in run.kills),
        "sends_cut": sum(kill.sends for kill in run.kills),
        "in_flight": sum(len(kill.in_flight) for kill in run.kills),
        "slowest_start_s": max(kill.started_seconds for kill in run.kills),
    }
    return verdict.told()


async def _kill(run: _Run) -> Kill:
    """Run load, and send SIGKILL at a random moment of a write."""
    load, product = run.load, run.product
    usual = sorted(load.milliseconds)[len(load.milliseconds) // 2] if load.milliseconds else 5.0
    moment = load.count + run.dice.randint(*WRITES)
    async with load.writing(product.address, rate=RATE):
        await load.until_sent(moment - 1)
        run.rss = max(run.rss, product.rss())
        before = len(load.broken)
        await load.until_sent(moment)
        # Sleep in a thread: the loop's own timers are too coarse for a write that takes 3 ms.
        at = await asyncio.to_thread(_kill_after, run.dice.uniform(0.0, usual / 1000), product)
    await product.ended()
    # The loop notices a connection that the kill closed a moment later.
    await run.there.until(
        lambda got: not any(r.open_at(at) and r.answered is None and r.gone is None for r in got)
    )
    sends = sum(receipt.open_at(at) for receipt in run.there.got)
    met, integrity = await state_after_kill(run.url)
    in_flight = newly(met, (kill.in_flight for kill in run.kills))
    return Kill(at, len(load.broken) - before, sends, in_flight, integrity)


def _kill_after(seconds: float, product: Product) -> float:
    time.sleep(seconds)
    return product.kill()


def _timings(verdict: Verdict, run: _Run, tenants: Tenants, engine: Engine) -> None:
    """Check that sending continued soon after each restart, and deliveries in flight came again."""
    got = run.there.got
    firsts: list[float] = []
    rescues: list[float] = []
    silent = 0
    for kill in run.kills:
        after = [r.at for r in got if r.at > kill.restarted]
        silent += not after
        firsts += [min(after) - kill.restarted] if after else []
        again: dict[Pair, float] = {}
        for receipt in got:
            if receipt.at > kill.at:
                again.setdefault(
                    (receipt.event_id, tenants.paths.get(receipt.path, "")), receipt.at
                )
        since = kill.restarted if engine == "sqlite" else kill.at
        rescues += [again[pair] - since for pair in kill.in_flight if pair in again]
    limit = FIRST_ATTEMPT_SECONDS + (0.0 if engine == "sqlite" else LEASE_SECONDS)
    verdict.find(silent, "restarts after which nothing was sent")
    verdict.find(sum(s > FIRST_ATTEMPT_SECONDS for s in firsts), "first attempts later than 5 s")
    verdict.find(sum(s > limit for s in rescues), f"rescued later than {limit:.0f} s")
    verdict.figures |= {
        "first_attempt_s": round(max(firsts, default=0.0), 2),
        "rescued_s": round(max(rescues, default=0.0), 2),
    }


SEED = 20260
BROKEN = "tests.system.broken_serve"


@sizes("kills", small=3, large=20)
@ENGINES
async def test_kills_lose_nothing(engine: Engine, kills: int) -> None:
    told = await run_kills(kills, engine, SEED)
    assert told["pass"], told


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("sqlite", marks=pytest.mark.slow),
        pytest.param("postgres", marks=pytest.mark.proof),
    ],
)
async def test_settling_before_sending_is_seen(engine: Engine) -> None:
    assert await shows(partial(run_kills, 1, engine, module=BROKEN), SEED)
