"""The real drain in a separate process, wired as in `carteiro serve --role worker`.

It delivers a database's events and reports the time from its start to the last settle.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import Mapping
from typing import Any

import uvloop

from gateway.app import build_info
from gateway.cli.serve import tune_interpreter
from gateway.server import startup
from gateway.server.config import load
from gateway.server.delivery import Delivery
from gateway.server.telemetry import logs
from gateway.server.telemetry.metrics import Metrics
from outbox.clock import SystemClock
from outbox.database.transaction import Tx
from outbox.ids import Ids
from outbox.queue.drain import cycle
from outbox.queue.drain.claim import Taken
from outbox.queue.state.deliveries import Capacity
from outbox.sending.addresses import Rules, parse_place
from outbox.sending.guard import Guard
from outbox.states import End


class Counting(Metrics):
    """The product's metrics, which also signal the end of all deliveries."""

    def expect(self, count: int) -> asyncio.Event:
        self.left = count
        self.all_ended = asyncio.Event()
        return self.all_ended

    def delivery_finished(self, webhook_id: str, end: End, latency: float | None) -> None:
        super().delivery_finished(webhook_id, end, latency)
        self.left -= 1
        if not self.left:
            self.all_ended.set()


def watch_claims() -> list[float]:
    """Record the seconds of work in each claim from now on, without fan-out and commit.

    The thread's own time: otherwise the measurement would include the busy event loop.
    """
    seconds: list[float] = []
    claim = cycle.claim  # type: ignore[attr-defined] # where the drain calls it

    async def timed(
        tx: Tx, capacity: Capacity, preclaimed: Mapping[str, int], at_once: int | None = None
    ) -> Taken:
        began = time.thread_time()
        try:
            return await claim(tx, capacity, preclaimed, at_once)
        finally:
            seconds.append(time.thread_time() - began)

    cycle.claim = timed  # type: ignore[attr-defined] # as above
    return seconds


def rss_mib() -> float:
    """Return the maximum memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def main(spec: dict[str, Any]) -> None:
    clock, ids = SystemClock(), Ids()
    claims = watch_claims()
    config = load(None, os.environ | spec["environment"])
    logs.configure(config.logging.level, clock=clock, node="drain", version="0")
    tune_interpreter()
    db = await startup.open_database(config, clock, ids, serving=True)
    ring = await startup.open_keys(config, db, ids)
    metrics = Counting(
        clock=clock, webhook_series=config.metrics.webhook_series, build=build_info(db, "")
    )
    db.observer = metrics
    ended = metrics.expect(int(spec["count"]))
    rules = Rules(config.egress.allow_http, tuple(map(parse_place, config.egress.allow)))
    guard = Guard(rules, clock)
    delivery = Delivery(config, db, ring, guard)
    began, used = time.perf_counter(), time.process_time()
    delivery.start()
    async with asyncio.timeout(300):
        await ended.wait()
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    told = {"seconds": seconds, "cpu": cpu, "claims": claims, "rss_mib": rss_mib()}
    print(json.dumps(told), flush=True)
    await delivery.drain(5.0)
    await guard.close()
    await db.close()


if __name__ == "__main__":
    uvloop.run(main(json.load(sys.stdin)))
