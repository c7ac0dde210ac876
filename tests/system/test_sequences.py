"""Ordered webhooks on two nodes while receivers refuse and a process dies.

Writers change records one write after another, receivers refuse some requests, and a process is
killed. The order of the writes is the version of the record, which neither the queue nor its clock
has a part in. tests/system/test_chaos.py has the same for one node on either engine.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from math import inf

import aiohttp

from tests.support.faults import shows
from tests.support.fleet import Fleet, fleet
from tests.support.ledger import Verdict, until_drained
from tests.support.load import CONNECTION, PATIENCE
from tests.support.recipients import Receipt

SEED = 40260
FAILING = 0.2
PAUSE = (0.0, 1.0)
"""Seconds between two writes to a record: some find the line empty, others do not."""
WRITTEN = "select id, owner_id, record_id, record_version from events order by pos"
STATES = "select event_id, webhook_id, state from deliveries where origin = 'event'"


@dataclass
class Writers:
    """Writers that change `records` records, each `writes` times, at a random address each time."""

    site: Fleet
    dice: random.Random
    acked: Counter[str] = field(default_factory=Counter)
    """2xx responses by record."""

    async def run(self, records: int, writes: int) -> None:
        keys = list(self.site.load.tenants.keys.values())
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
            await asyncio.gather(
                *(self._record(http, keys[n % len(keys)], writes) for n in range(records))
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
        address = self.dice.choice(self.site.nodes).product.address
        method, path = ("PATCH", f"/{record}") if record else ("POST", "")
        try:
            async with http.request(
                method, f"{address}/api/contacts{path}", json={"name": name},
                headers={"X-API-Key": key}, timeout=aiohttp.ClientTimeout(PATIENCE),
            ) as answer:  # fmt: skip
                body = await answer.json()
                if answer.status in (200, 201):
                    return str(body["id"])
                assert answer.status == 503, (answer.status, body)
        except CONNECTION:
            pass
        return ""


async def run_two_nodes(
    seed: int, *, kills: int, records: int, writes: int, broken: str = ""
) -> Verdict:
    """Write to two nodes on one PostgreSQL, and SIGKILL one of them `kills` times."""
    draft = {"events": ("contact.created", "contact.updated"), "ordered": True}
    async with fleet(seed, 2, broken=broken, draft=draft) as site:
        site.there.behave(failing=FAILING)
        writers = Writers(site, random.Random(seed + 1))
        writing, met = asyncio.create_task(writers.run(records, writes)), 0
        try:
            for _ in range(kills):
                await site.seconds(2.0, 4.0)
                node = site.dice.choice(site.nodes).product
                at = node.kill()
                await node.ended()
                met += sum(receipt.open_at(at) for receipt in site.there.got)
                await node.start()
            await writing
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        verdict = Verdict(f"ordered, {kills} kills", seed, acks=writers.acked.total())
        verdict.find(await until_drained(site.url, 180), "events and deliveries unfinished")
        verdict.find(bool(kills and not met), "no kill met a send")
        await judge(verdict, site, writers)
    return verdict


async def judge(verdict: Verdict, site: Fleet, writers: Writers) -> None:
    """Compare the arrivals at each webhook, record by record, with the versions of the records."""
    written, got, tenants = await site.query(WRITTEN), site.there.got, site.load.tenants
    version = {event: number for event, _, _, number in written}
    record_of = {event: record for event, _, record, _ in written}
    rows = Counter(record for _, _, record, _ in written)
    verdict.rows = len(written)
    verdict.lost += verdict.find(
        sum(rows[record] < count for record, count in writers.acked.items()),
        "records with fewer events than acknowledged writes",
    )
    wanted = {(event, hook) for event, owner, _, _ in written for hook in tenants.webhooks[owner]}
    states = {(event, hook): state for event, hook, state in await site.query(STATES)}
    verdict.lost += verdict.find(len(wanted - set(states)), "deliveries never made")
    verdict.unexpected += verdict.find(len(set(states) - wanted), "deliveries that should not be")
    answered = {(r.event_id, tenants.paths[r.path]) for r in got if r.answered is not None}
    verdict.lost += verdict.find(len(wanted - answered), "deliveries that no receiver has")
    lines: dict[tuple[str, str], list[Receipt]] = {}
    for receipt in sorted(got, key=lambda receipt: receipt.at):
        line = (tenants.paths[receipt.path], record_of[receipt.event_id])
        lines.setdefault(line, []).append(receipt)
    back = sum(_disorder(line, version) for line in lines.values())
    beside = sum(_overtaking(line, version) for line in lines.values())
    verdict.find(back, "requests that came after a later write of their record")
    verdict.find(beside, "requests that came before the one in front of them had ended")
    verdict.figures |= {"disorder": back, "overtaking": beside, "lines": len(lines)}


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


async def test_each_record_keeps_its_order_on_two_nodes_of_which_one_is_killed() -> None:
    (await run_two_nodes(SEED, kills=3, records=200, writes=6)).must_hold()


async def test_sending_without_a_look_at_the_head_loses_the_order() -> None:
    hasty = partial(run_two_nodes, kills=0, records=20, writes=5, broken="overtakes")
    assert await shows(hasty, SEED, "disorder")
