"""No lane waits for ever beside full lanes (A4)."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from outbox.database.transaction import Database
from outbox.webhooks.secrets import KeyRing
from tests.benchmarks.children import child
from tests.benchmarks.figures import rounded
from tests.support.drain import Counted, add_webhook, make, ring, rows, worker_for
from tests.support.engines import Engine
from tests.support.faults import ENGINES, LARGE
from tests.support.waiting import until
from tests.system.staging import opened, pile_up

WITHIN_SECONDS = 2.0
PATIENCE_SECONDS = 10.0
WAIT_SECONDS = 0.05
"""The schedule in tests: seconds from a failure to its retry."""
LANES_AN_OWNER = 50
OWN_BACKLOG = 400
WARM = 300
"""Deliveries sent before the first turn is measured."""
RETRIED = """
select a.started_at + a.total_us as failed, b.started_at as again
from attempts a join attempts b on b.delivery_id = a.delivery_id and b.number = 2
where a.webhook_id = $1 and a.number = 1 and a.outcome <> 'success'
"""
FIRST = "select started_at from attempts where webhook_id = $1 and number = 1"
LEFT = """
select count(*) as lanes from webhooks w
where w.owner_id like 'a%' and exists (
  select 1 from deliveries d where d.webhook_id = w.id and d.state = 'ready')
"""


async def run_starvation(
    engine: Engine, lanes: int, slots: int, *, rounds: int = 4, backlog: int = 80_000
) -> dict[str, Any]:
    """Return the longest waits for a turn beside `lanes` with a backlog, over some rounds."""
    findings: list[str] = []
    with tempfile.TemporaryDirectory(prefix="carteiro-turns-") as name:
        log = Path(name) / "receiver.log"
        with child("tests.benchmarks.receiver", log=log) as receiver:
            url = f"http://127.0.0.1:{receiver.json()['port']}"
            async with opened(engine) as db:
                key = ring()
                await _pile_up(db, key, url, lanes, backlog // lanes)
                db.observer = watch = Counted()
                worker, sender = worker_for(db, key, slots=slots)
                loop = asyncio.create_task(worker.run())
                try:
                    await watch.until("attempt", WARM, seconds=60)
                    waits = await _rounds(db, key, url, rounds, own=lanes <= slots)
                    [left] = await db.read(rows, LEFT)
                finally:
                    await worker.drain(1.0)
                    await sender.close()
                    loop.cancel()
                    await asyncio.gather(loop, return_exceptions=True)
    worst = {who: max(seconds) for who, seconds in waits.items()}
    for who, seconds in worst.items():
        if seconds > WITHIN_SECONDS:
            late = sum(wait > WITHIN_SECONDS for wait in waits[who])
            findings.append(f"{who} waited {seconds:.1f} s or more, {late} of {rounds} too long")
    # A lane's window may take much of its backlog in a few turns.
    if left["lanes"] < lanes / 2:
        findings.append(f"only {left['lanes']} of {lanes} lanes had a backlog to the end")
    figures = {f"worst_{who.replace(' ', '_')}_s": rounded(wait) for who, wait in worst.items()}
    sent = watch.counts["attempt"]
    told = {"engine": engine, "lanes": lanes, "slots": slots, "sent": sent, **figures}
    return {"pass": not findings, **told, "findings": findings}


async def _pile_up(db: Database, key: KeyRing, url: str, lanes: int, each: int) -> None:
    """Create the lanes and their backlogs, before the drain starts."""
    for first in range(0, lanes, LANES_AN_OWNER):
        owner = f"a{first:023x}"
        numbers = range(first, min(first + LANES_AN_OWNER, lanes))
        made = await asyncio.gather(
            *(
                add_webhook(db, key, f"{url}/after/{5 + n % 16}/{n}", "other.made", owner=owner)
                for n in numbers
            )
        )
        event_id = await db.write(make, "backlog", owner=owner)
        await db.write(pile_up, [webhook_id for webhook_id, _ in made], event_id, each)


async def _rounds(
    db: Database, key: KeyRing, url: str, rounds: int, own: bool
) -> dict[str, list[float]]:
    """Return the seconds that each waited; without a turn it counts as PATIENCE_SECONDS."""
    waits: dict[str, list[float]] = {}
    for number in range(rounds):
        asked = {
            "first event": _first(db, key, url, number),
            "retry": _retry(db, key, f"{url}/once/{number}", f"c{number:023x}", 0),
        }
        if own:
            # With more lanes than slots a lane's own backlog alone may take longer.
            asked["retry before a backlog"] = _retry(
                db, key, f"{url}/once/own{number}", f"d{number:023x}", OWN_BACKLOG
            )
        for who, wait in zip(asked, await asyncio.gather(*asked.values()), strict=True):
            waits.setdefault(who, []).append(wait)
    return waits


async def _first(db: Database, key: KeyRing, url: str, number: int) -> float:
    """Measure from the commit of a new webhook's first event to its sending."""
    owner = f"b{number:023x}"
    webhook_id, _ = await add_webhook(db, key, f"{url}/new/{number}", owner=owner)
    began = time.time()
    await db.write(make, "first", owner=owner)
    try:
        [row] = await until(lambda: db.read(rows, FIRST, webhook_id), PATIENCE_SECONDS)
    except TimeoutError:
        return PATIENCE_SECONDS
    return max(float(row["started_at"]) / 1_000_000 - began, 0.0)


async def _retry(db: Database, key: KeyRing, url: str, owner: str, backlog: int) -> float:
    """Measure from the due time of a retry to its sending, at a webhook that failed once."""
    webhook_id, _ = await add_webhook(db, key, url, owner=owner)
    event_id = await db.write(make, "once", owner=owner)
    if backlog:
        await db.write(pile_up, [webhook_id], event_id, backlog)
    try:
        [row] = await until(lambda: db.read(rows, RETRIED, webhook_id), PATIENCE_SECONDS)
    except TimeoutError:
        return PATIENCE_SECONDS
    return max((float(row["again"]) - float(row["failed"])) / 1_000_000 - WAIT_SECONDS, 0.0)


SMALL = pytest.param(20, 16, 1, 20_000, id="small", marks=pytest.mark.slow)
LARGE_RUNS = ((20, 256, 5), (20, 8, 5), (2_000, 256, 3), (2_000, 16, 3))
"""Lanes with a backlog, slots of the worker, and the number of turns requested beside them."""


@pytest.mark.timed
@pytest.mark.parametrize(
    ("lanes", "slots", "rounds", "backlog"),
    [SMALL, *(pytest.param(*run, 80_000, marks=LARGE) for run in LARGE_RUNS)],
)
@ENGINES
async def test_beside_full_lanes_everybody_gets_a_turn(
    engine: Engine, lanes: int, slots: int, rounds: int, backlog: int
) -> None:
    told = await run_starvation(engine, lanes, slots, rounds=rounds, backlog=backlog)
    assert told["pass"], told
