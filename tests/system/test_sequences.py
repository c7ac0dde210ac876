"""Ordered webhooks while receivers refuse and processes die.

Writers change records one write after another, receivers refuse some requests, and processes are
killed. The order of the writes is the version of the record, which neither the queue nor its clock
has a part in.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.migrate import migrate
from outbox.database.transaction import Tx
from outbox.ids import Ids
from tests.support.databases import SOURCES
from tests.support.drain import drain, make, ring
from tests.support.engines import Engine, empty_database
from tests.support.faults import ENGINES, shows, sizes
from tests.support.fleet import LATENCY, fleet
from tests.support.ledger import Verdict, query, until_drained
from tests.support.load import CONNECTION, PATIENCE
from tests.support.product import Product
from tests.support.recipients import Receipt, Recipients, recipients
from tests.support.tenants import Tenants, settle_in

EVENTS = ("contact.created", "contact.updated")
OWNERS = 20
RECEIVERS = 30
FAILING = 0.2
PAUSE = (0.0, 1.0)
"""Seconds between two writes to a record: some find the line empty, others do not."""
BETWEEN = (2.0, 4.0)
"""Seconds between two kills."""
DRAIN_SECONDS = 180.0
NODES = 2

WRITTEN = "select id, owner_id, record_id, record_version from events order by pos"
STATES = """
select event_id, webhook_id, state, ordered from deliveries where origin = 'event'
"""


@dataclass
class Writers:
    """Writers that change `records` records, each `writes` times, at a random address each time."""

    tenants: Tenants
    addresses: Sequence[str]
    dice: random.Random
    acked: Counter[str] = field(default_factory=Counter)
    """2xx responses by record."""
    broken: int = 0

    async def run(self, records: int, writes: int) -> None:
        owners = list(self.tenants.keys)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
            await asyncio.gather(
                *(
                    self._record(http, self.tenants.keys[owners[n % len(owners)]], writes)
                    for n in range(records)
                )
            )

    async def _record(self, http: aiohttp.ClientSession, key: str, writes: int) -> None:
        record = ""
        for number in range(writes):
            await asyncio.sleep(self.dice.uniform(*PAUSE))
            while not (done := await self._write(http, key, record, f"write {number}")):
                await asyncio.sleep(self.dice.uniform(*PAUSE))
            record = done
            self.acked[record] += 1

    async def _write(self, http: aiohttp.ClientSession, key: str, record: str, name: str) -> str:
        """Create or change a record; return its id, empty when there was no answer or no place."""
        address = self.dice.choice(self.addresses)
        method, path = ("PATCH", f"/{record}") if record else ("POST", "")
        try:
            async with http.request(
                method,
                f"{address}/api/contacts{path}",
                json={"name": name},
                headers={"X-API-Key": key},
                timeout=aiohttp.ClientTimeout(PATIENCE),
            ) as answer:
                body = await answer.json()
                if answer.status in (200, 201):
                    return str(body["id"])
                assert answer.status == 503, (answer.status, body)
        except CONNECTION:
            pass
        self.broken += 1
        return ""


async def run_two_nodes(
    kills: int, seed: int, *, records: int = 200, writes: int = 6, module: str = "gateway"
) -> dict[str, Any]:
    """Write to two nodes on one PostgreSQL, and SIGKILL one of them `kills` times.

    `module` is another entry point in place of the product: the negative control.
    """
    draft = {"events": EVENTS, "ordered": True}
    async with fleet(seed, NODES, module=module, draft=draft) as site:
        site.there.behave(failing=FAILING)
        nodes = [node.product for node in site.nodes]
        return await _run(
            "postgres, 2 nodes", site.url, site.there, site.load.tenants, nodes, seed,
            kills, records, writes,
        )  # fmt: skip


async def run_one_node(
    engine: Engine, kills: int, seed: int, *, records: int = 200, writes: int = 6
) -> dict[str, Any]:
    """Write to one node, SIGKILL it `kills` times, and start it again at once."""
    with tempfile.TemporaryDirectory(prefix="carteiro-sequences-") as home:
        folder = Path(home)
        async with empty_database(engine, folder) as url:
            async with recipients(RECEIVERS, seed=seed, latency=LATENCY) as there:
                there.behave(failing=FAILING)
                tenants = await settle_in(
                    url, folder, there.ports, owners=OWNERS, events=EVENTS, ordered=True
                )
                node = Product(folder, url, tenants.key_file)
                try:
                    await node.start()
                    return await _run(
                        f"{engine}, 1 node", url, there, tenants, [node], seed,
                        kills, records, writes,
                    )  # fmt: skip
                finally:
                    await node.close()


async def _run(
    fault: str,
    url: str,
    there: Recipients,
    tenants: Tenants,
    nodes: Sequence[Product],
    seed: int,
    kills: int,
    records: int,
    writes: int,
) -> dict[str, Any]:
    dice = random.Random(seed)
    writers = Writers(tenants, [node.address for node in nodes], random.Random(seed + 1))
    writing = asyncio.create_task(writers.run(records, writes))
    met = 0
    try:
        for _ in range(kills):
            await asyncio.sleep(dice.uniform(*BETWEEN))
            node = dice.choice(nodes)
            at = node.kill()
            await node.ended()
            met += sum(receipt.open_at(at) for receipt in there.got)
            await node.start()
        await writing
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
    left = await until_drained(url, DRAIN_SECONDS)
    verdict = Verdict(f"ordered, {fault}, {kills} kills", seed, acks=writers.acked.total())
    verdict.rss_mib = max(node.rss() for node in nodes)
    verdict.find(left, "events and deliveries unfinished")
    verdict.find(bool(kills and not met), "no kill met a send")
    await judge(verdict, url, there.got, tenants, writers)
    return verdict.told()


async def judge(
    verdict: Verdict, url: str, got: Sequence[Receipt], tenants: Tenants, writers: Writers
) -> None:
    """Compare the arrivals at each webhook, record by record, with the versions of the records."""
    written = await query(url, WRITTEN)
    version = {event: number for event, _, _, number in written}
    record_of = {event: record for event, _, record, _ in written}
    rows = Counter(record for _, _, record, _ in written)
    verdict.rows = len(written)
    verdict.lost += verdict.find(
        sum(rows[record] < count for record, count in writers.acked.items()),
        "records with fewer events than acknowledged writes",
    )
    wanted = {(event, hook) for event, owner, _, _ in written for hook in tenants.webhooks[owner]}
    states = {(event, hook): (state, line) for event, hook, state, line in await query(url, STATES)}
    verdict.deliveries = len(states)
    verdict.lost += verdict.find(len(wanted - set(states)), "deliveries never made")
    verdict.unexpected += verdict.find(len(set(states) - wanted), "deliveries that should not be")
    verdict.lost += verdict.find(
        sum(state != "delivered" for state, _ in states.values()), "deliveries not delivered"
    )
    arrivals: dict[tuple[str, str], list[Receipt]] = {}
    for receipt in sorted(got, key=lambda receipt: receipt.at):
        line = (tenants.paths[receipt.path], record_of[receipt.event_id])
        arrivals.setdefault(line, []).append(receipt)
    answered = {(r.event_id, tenants.paths[r.path]) for r in got if r.answered is not None}
    verdict.lost += verdict.find(len(wanted - answered), "deliveries that no receiver has")
    verdict.duplicated = sum(r.answered is not None for r in got) - len(answered)
    back = sum(_disorder(line, version) for line in arrivals.values())
    beside = sum(_overtaking(line, version) for line in arrivals.values())
    verdict.find(back, "requests that came after a later write of their record")
    verdict.find(beside, "requests that came before the one in front of them had ended")
    verdict.figures |= {
        "disorder": back,
        "overtaking": beside,
        "records": len(rows),
        "lines": len(arrivals),
        "requests": len(got),
        "refused": sum(r.answered is None and r.gone is None for r in got),
        "broken_writes": writers.broken,
        "unordered_rows": sum(not line for _, line in states.values()),
    }


def _disorder(line: Sequence[Receipt], version: Mapping[str, int]) -> int:
    """Return how many requests of a line came after one of a later version."""
    latest, wrong = -1, 0
    for receipt in line:
        wrong += version[receipt.event_id] < latest
        latest = max(latest, version[receipt.event_id])
    return wrong


def _overtaking(line: Sequence[Receipt], version: Mapping[str, int]) -> int:
    """Return how many requests came while one of another version was open, or unanswered."""
    return sum(
        version[later.event_id] != version[earlier.event_id]
        and later.at < min(earlier.answered or inf, earlier.gone or inf)
        for earlier, later in pairwise(line)
    )


COST_EVENTS = 4_000
RECORDS = 200
AT_ONCE = 500
ROUNDS = 3
COST_PATIENCE = 120.0
WAYS: dict[str, tuple[bool, int]] = {
    "unordered": (False, RECORDS),
    "ordered, each record once": (True, COST_EVENTS),
    f"ordered, {RECORDS} records": (True, RECORDS),
}
"""Of each way: the option, and the number of records that the events are about."""


async def run_cost(engine: Engine) -> dict[str, Any]:
    """Print microseconds of this process and deliveries per second for each way (medians)."""
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    async with recipients(1) as there:
        for _ in range(ROUNDS):
            for way, (ordered, records) in WAYS.items():
                url = f"http://127.0.0.1:{there.ports[0]}/"
                found[way].append(await _once(engine, url, ordered, records))
    told: dict[str, Any] = {"engine": engine, "events": COST_EVENTS, "pass": True}
    plain = median(cpu for cpu, _ in found["unordered"])
    for way, results in found.items():
        cpu = median(cpu for cpu, _ in results)
        told[way] = {
            "cpu_us": round(cpu),
            "of_unordered": round(cpu / plain, 2),
            "per_second": round(median(rate for _, rate in results)),
        }
    print(json.dumps(told), flush=True)
    return told


async def _once(engine: Engine, url: str, ordered: bool, records: int) -> tuple[float, float]:
    """Return the microseconds of a delivery, and deliveries per second."""
    clock, ids = SystemClock(), Ids()
    with tempfile.TemporaryDirectory(prefix="carteiro-cost-") as home:
        async with empty_database(engine, Path(home)) as place:
            db = await database.open(place, clock=clock, ids=ids, serving=True)
            try:
                await migrate(db, SOURCES)
                async with drain(db, ring()) as running:
                    await running.webhook(url, ordered=ordered)
                    spent, began = time.process_time(), time.monotonic()
                    for start in range(0, COST_EVENTS, AT_ONCE):
                        await db.write(_some, start, records)
                    await running.watch.until("delivery_finished", COST_EVENTS, COST_PATIENCE)
                    cpu = (time.process_time() - spent) / COST_EVENTS
                    return cpu * 1_000_000, COST_EVENTS / (time.monotonic() - began)
            finally:
                await db.close()


async def _some(tx: Tx, start: int, records: int) -> None:
    for number in range(start, start + AT_ONCE):
        await make(tx, f"record-{number % records}")


SEED = 40260
HASTY = "tests.system.hasty_serve"


@sizes("kills, records", large=(3, 200))
@ENGINES
async def test_each_record_keeps_its_order_when_the_process_is_killed(
    engine: Engine, kills: int, records: int
) -> None:
    told = await run_one_node(engine, kills, SEED, records=records)
    assert told["pass"], told


@sizes("kills, records", large=(3, 200))
async def test_each_record_keeps_its_order_on_two_nodes_of_which_one_is_killed(
    kills: int, records: int
) -> None:
    told = await run_two_nodes(kills, SEED, records=records)
    assert told["pass"], told


@pytest.mark.proof
@pytest.mark.timeout(300)
async def test_sending_without_a_look_at_the_head_loses_the_order() -> None:
    hasty = partial(run_two_nodes, 0, records=20, writes=5, module=HASTY)
    assert await shows(hasty, SEED, "disorder")


@pytest.mark.proof
@pytest.mark.timeout(600)
@ENGINES
async def test_the_order_has_its_price(engine: Engine) -> None:
    """It prints the price; no bar."""
    assert (await run_cost(engine))["pass"]
