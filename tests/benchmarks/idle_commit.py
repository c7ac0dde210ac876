"""The latency of an idle system: from a write's commit to the request at its receiver."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from outbox.database.transaction import Row, Tx
from tests.benchmarks.children import answer_of, child
from tests.benchmarks.engines import fresh
from tests.benchmarks.figures import Verdict, in_ms, quantile
from tests.benchmarks.load import request
from tests.benchmarks.product import product
from tests.benchmarks.sizes import Size
from tests.benchmarks.staging import Stage
from tests.benchmarks.write_path import CONTACT

WRITES_A_SECOND = 20.0
PATIENCE = 30.0
"""Seconds to wait for the last arrivals."""


async def idle_commit(size: Size) -> Verdict:
    """Measure median and p99 on each engine, from the transaction's start, commit included."""
    verdict = Verdict("idle_commit")
    for engine in size.engines:
        with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name:
            folder = Path(name)
            async with fresh(engine, folder) as stage:
                times = await _times(stage, size)
        verdict.figures[f"{engine}_writes"] = len(times)
        if len(times) < size.singles:
            verdict.broken.append(f"{engine}: only {len(times)} of {size.singles} arrived")
            continue
        verdict.figures[f"{engine}_median_ms"] = in_ms(quantile(times, 0.5))
        verdict.figures[f"{engine}_p99_ms"] = in_ms(quantile(times, 0.99))
    return verdict


async def _times(stage: Stage, size: Size) -> list[int]:
    """Return microseconds from the start of each write's transaction to its arrival."""
    log = stage.folder / "children.log"
    with child("tests.benchmarks.receiver", "record", log=log) as receiver:
        port = receiver.json()["port"]
        await stage.prepare()
        [person] = await stage.people([[f"http://127.0.0.1:{port}/hook"]])
        with product(stage.environment(port), stage.folder) as running:
            spec = {
                "port": running.port,
                "connections": 1,
                "seconds": size.singles / WRITES_A_SECOND,
                "per_second": WRITES_A_SECOND,
                "expect": 201,
                "requests": [request("POST", "/api/contacts", CONTACT, X_API_Key=person.key)],
            }
            sent = answer_of("tests.benchmarks.load", log, spec)["count"]
            # The end of the process claims nothing more, so the last writes arrive before it.
            arrived = arrivals(port)
            patience = time.monotonic() + PATIENCE
            while len(arrived) < sent and time.monotonic() < patience:
                time.sleep(0.05)
                arrived += arrivals(port)
        async with stage.opened() as db:
            rows = await db.read(events)
    begun = {row["id"]: row["occurred_at"] for row in rows}
    return [at - begun[event] for _, event, at in arrived]


def arrivals(port: int) -> list[tuple[str, str, int]]:
    """Return arrivals since the previous call: path, event id, wall microseconds."""
    with urlopen(f"http://127.0.0.1:{port}/report", timeout=30) as answer:
        return [(path, event, at) for path, event, at in json.load(answer)]


async def events(tx: Tx) -> Sequence[Row]:
    """Return all events: id, owner and the start of their transactions."""
    found: Any = await tx.all("select id, owner_id, occurred_at from events")
    return list(found)
