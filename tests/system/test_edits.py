"""R23: a change of a webhook holds from its return on, for requests that are queued too.

After an edit has returned, its own process starts no request to the old address, and another node
none after a second. Nothing is lost, and nothing arrives twice.
"""

from __future__ import annotations

import asyncio
import random
import resource
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from aiohttp import web

from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.ids import Ids
from outbox.sending.request import sign_body, sign_standard
from outbox.worker import Worker, WorkerSettings
from outbox.worker.sends import CHANGED
from tests.support.drain import inbox, ring, rows
from tests.support.engines import Engine
from tests.support.faults import ENGINES, sizes
from tests.support.ledger import Verdict
from tests.support.waiting import until
from tests.system.edits_town import Act, Deaf, Noting, Start, Town
from tests.system.staging import address, several

WHAT = ("edit", "edit", "pause", "rotate", "delete")
WEBHOOKS = 8
ANSWER_SECONDS = 0.02
BETWEEN_SECONDS = 0.05
OTHER_NODE_SECONDS = 1.0
DRAIN_SECONDS = 60.0
DEAF_ACTS = 10
TRIES = 3
SAME_NODE = "requests of the same node"

DELIVERIES = "select event_id, webhook_id, state from deliveries"
WITHDRAWN = "select count(*) as count from attempts where error = $1"


async def run_edits(
    engine: Engine, seed: int, *, acts: int = 40, deaf: bool = False
) -> dict[str, Any]:
    """Do `acts` changes under load, on two nodes where the engine has them; judge every request.

    With `deaf`, workers hear of no change: the negative control.
    """
    dice = random.Random(seed)
    async with address(engine) as url, several(url, 1 + (engine == "postgres")) as nodes:
        async with inbox() as box:

            async def slowly(request: web.Request) -> web.StreamResponse:
                await asyncio.sleep(ANSWER_SECONDS)
                return web.Response()

            box.answer = slowly
            town = Town(nodes, ring(), box, dice)
            for _ in range(WEBHOOKS):
                await town.add()
            async with _workers(town, deaf=deaf):
                end = asyncio.Event()
                async with asyncio.TaskGroup() as group:
                    group.create_task(town.write_on(end))
                    for number in range(acts):
                        await asyncio.sleep(dice.uniform(0, BETWEEN_SECONDS))
                        await town.act(WHAT[number % len(WHAT)])
                    end.set()
                await until(town.done, DRAIN_SECONDS)
            return await _judged(town, engine, seed)


async def run_deaf(engine: Engine, seed: int) -> dict[str, Any]:
    """Run workers that hear of no change until a request of the old settings is found: TRIES runs.

    The negative control: it passes when one is found.
    """
    told: dict[str, Any] = {}
    for tried in range(TRIES):
        told = await run_edits(engine, seed + tried, acts=DEAF_ACTS, deaf=True)
        if any(SAME_NODE in finding for finding in told["findings"]):
            return {"pass": True, "tries": tried + 1, "found": told["findings"]}
    return {"pass": False, "tries": TRIES, "findings": ["no run showed an old request"]}


@asynccontextmanager
async def _workers(town: Town, *, deaf: bool) -> AsyncIterator[None]:
    running = []
    for number, db in enumerate(town.nodes):
        sender = Noting(number, town.dice, town.starts)
        heard = cast(Database, Deaf(db)) if deaf else db
        worker = Worker(
            heard, town.key, sender, clock=SystemClock(), ids=Ids(),
            settings=WorkerSettings(timeout=5.0),
        )  # fmt: skip
        running.append((worker, sender, asyncio.create_task(worker.run())))
    try:
        yield
    finally:
        for worker, sender, task in running:
            await worker.drain(1.0)
            await sender.close()
            task.cancel()
        await asyncio.gather(*(task for _, _, task in running), return_exceptions=True)


async def _judged(town: Town, engine: Engine, seed: int) -> dict[str, Any]:
    verdict = Verdict(f"R23 changes of webhooks, {engine}", seed, acks=town.written)
    made = {
        (row["event_id"], row["webhook_id"]): row["state"]
        for row in await town.nodes[0].read(rows, DELIVERIES)
    }
    [row] = await town.nodes[0].read(rows, "select count(*) as count from events")
    verdict.rows, verdict.deliveries = int(row["count"]), len(made)
    came = Counter(
        (got.headers["X-Webhook-Id"], town.places[got.path.split("/")[1]]) for got in town.box.got
    )
    alive = {pair for pair in made if pair[1] not in town.deleted}
    undelivered = sum(made[pair] != "delivered" for pair in alive)
    verdict.lost += verdict.find(undelivered, "deliveries of a living webhook not delivered")
    verdict.lost += verdict.find(len(alive - set(came)), "deliveries that did not arrive")
    verdict.lost += verdict.find(town.written - verdict.rows, "writes without their event")
    verdict.unexpected += verdict.find(len(set(came) - set(made)), "arrivals without a delivery")
    verdict.duplicated = sum(count - 1 for count in came.values())
    verdict.find(verdict.duplicated, "requests that arrived twice without a crash")
    late = _late(town, verdict)
    [row] = await town.nodes[0].read(rows, WITHDRAWN, CHANGED)
    verdict.find(not row["count"], "no change met a queued request")
    times = sorted(town.milliseconds)
    verdict.p50_ms, verdict.p99_ms, verdict.max_ms = (
        round(times[min(int(len(times) * share), len(times) - 1)], 1) for share in (0.5, 0.99, 1)
    )
    verdict.rss_mib = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
    verdict.figures |= {
        "nodes": len(town.nodes), "changes": dict(Counter(act.what for act in town.acts)),
        "withdrawn": int(row["count"]), "other_node_late_ms": round(late * 1000, 1),
    }  # fmt: skip
    return verdict.told()


def _late(town: Town, verdict: Verdict) -> float:
    """Find requests that a change should have stopped; return the longest delay of another node."""
    found: Counter[str] = Counter()
    longest = 0.0
    by_url: dict[str, list[Start]] = {}
    for start in town.starts:
        by_url.setdefault(start.url, []).append(start)
    for act in town.acts:
        for start in by_url.get(act.url, ()):
            if not act.at < start.at < act.end or _follows(act, start):
                continue
            late = start.at - act.at
            if start.node == act.node:
                found[f"{SAME_NODE} after {act.what}"] += 1
            elif late > OTHER_NODE_SECONDS:
                found[f"requests of another node a second after {act.what}"] += 1
            longest = max(longest, late if start.node != act.node else 0.0)
    for what, count in found.items():
        verdict.find(count, what)
    return longest


def _follows(act: Act, start: Start) -> bool:
    """Return whether a request is what the change asks for."""
    headers = start.headers
    if act.what == "stage":
        moment = int(headers["webhook-timestamp"])
        wanted = sign_standard((act.secret,), headers["webhook-id"], moment, start.body)
        return wanted in headers["webhook-signature"].split()
    if act.what == "activate":
        return headers["x-webhook-signature"] == sign_body(act.secret, start.body)
    return False


@pytest.mark.timed
@sizes("acts", small=10, large=150)
@ENGINES
async def test_no_request_of_the_old_settings_starts_after_a_change(
    engine: Engine, acts: int
) -> None:
    told = await run_edits(engine, seed=1, acts=acts)
    assert told["pass"], told


@pytest.mark.slow
@ENGINES
async def test_workers_that_hear_of_no_change_are_found(engine: Engine) -> None:
    told = await run_deaf(engine, seed=3)
    assert told["pass"], told
