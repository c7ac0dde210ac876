"""Many receivers that accept and never answer, and what the others feel of it.

Each share of hanging webhooks is loaded twice: on a running server, and right after a crash and a
restart with the backlog of the hanging ones due. Times run from the start of a write's
transaction to the moment its receiver answers 200.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks.children import answer_of, child
from tests.benchmarks.figures import Verdict, in_ms, quantile
from tests.benchmarks.idle_commit import arrivals, events
from tests.benchmarks.load import request
from tests.benchmarks.product import Product
from tests.benchmarks.sizes import Size
from tests.benchmarks.staging import Person, Stage
from tests.benchmarks.write_path import CONTACT

SHARES = (0, 10, 30, 60, 0)
"""Percent of the webhooks; what is compared with comes first and last."""
OF_NONE = 1.5
EVENTS_PER_WEBHOOK_SECOND = 0.2
SETTLE_SECONDS = 30.0


async def hanging(size: Size) -> Verdict:
    """The healthy webhooks' p99 at each share over the one with none hanging."""
    verdict = Verdict("hanging")
    verdict.figures["webhooks"] = size.webhooks
    found: dict[tuple[str, int], list[int]] = {}
    for share in SHARES:
        with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name:
            phases = await _phases(Path(name), share, size)
        for phase, (times, missing) in phases.items():
            if missing or not times:
                verdict.broken.append(f"{share} % {phase}: {missing} never arrived")
            found.setdefault((phase, share), []).extend(times)
    if verdict.broken:
        return verdict
    for (phase, share), times in found.items():
        verdict.figures[f"{phase}_{share}_p50_ms"] = in_ms(quantile(times, 0.5))
        p99 = quantile(times, 0.99)
        verdict.figures[f"{phase}_{share}_p99_ms"] = in_ms(p99)
        if share:
            none = quantile(found[phase, 0], 0.99)
            verdict.at_most(f"{phase}_{share}_of_none", p99 / none, OF_NONE)
    return verdict


async def _phases(folder: Path, share: int, size: Size) -> dict[str, tuple[list[int], int]]:
    """For each phase: microseconds of every healthy event, and how many never arrived."""
    stage = Stage(f"sqlite:///{folder / 'carteiro.db'}", folder)
    log = folder / "children.log"
    await stage.prepare()
    with child("tests.benchmarks.receiver", "record", log=log) as receiver:
        port = receiver.json()["port"]
        # Spread among the others, so that no order of ids or lanes keeps them apart.
        dead = {n for n in range(size.webhooks) if (n * 37) % 100 < share}
        paths = [f"/{'hang' if n in dead else 'ok'}/{n}" for n in range(size.webhooks)]
        people = await stage.people([[f"http://127.0.0.1:{port}{path}"] for path in paths])
        healthy = {person.id for n, person in enumerate(people) if n not in dead}
        environment = stage.environment(port)
        phases: dict[str, tuple[list[int], int]] = {}
        known: set[str] = set()
        running = Product(environment, folder)
        try:
            for phase in ("running", "restarted"):
                if phase == "restarted":
                    running.kill()
                    running = Product(environment, folder)
                done = _load(log, running.port, people, size)
                if done["bad"] or done["gone"]:
                    raise RuntimeError(f"the API failed: {done['bad']} bad, {done['gone']} gone")
                phases[phase] = await _measured(stage, port, healthy, known)
        finally:
            running.kill()
    return phases


def _load(log: Path, port: int, people: list[Person], size: Size) -> Any:
    """Contacts of all owners in turn, at a steady pace."""
    keys = [person.key for person in people]
    spec = {
        "port": port,
        "connections": 32,
        "seconds": size.hanging_seconds,
        "per_second": size.webhooks * EVENTS_PER_WEBHOOK_SECOND,
        "expect": 201,
        "requests": [request("POST", "/api/contacts", CONTACT, X_API_Key=key) for key in keys],
    }
    return answer_of("tests.benchmarks.load", log, spec)


async def _measured(
    stage: Stage, port: int, healthy: set[str], known: set[str]
) -> tuple[list[int], int]:
    """Wait until every healthy event of this phase has arrived; `known` are those of others."""
    async with stage.opened() as db:
        begun = {
            row["id"]: row["occurred_at"]
            for row in await db.read(events)
            if row["owner_id"] in healthy and row["id"] not in known
        }
    known.update(begun)
    arrived: dict[str, int] = {}
    for _ in range(round(SETTLE_SECONDS / 0.2)):
        for _, event, at in arrivals(port):
            arrived.setdefault(event, at)
        if begun.keys() <= arrived.keys():
            break
        await asyncio.sleep(0.2)
    times = [arrived[event] - began for event, began in begun.items() if event in arrived]
    return times, len(begun) - len(times)
