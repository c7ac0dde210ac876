"""Random acts of operators, kills and clock steps leave nothing lost, stuck, doubled or wrong.

Nothing is lost, stuck, without a head, or sent after its success; the chain is green; the charts'
figures equal the rows. A seed replays the acts, not their timing.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from outbox.database.transaction import Tx
from outbox.ids import Ids
from outbox.webhooks.key_files import read_key_file
from tests.support import figures
from tests.support.chains import walked
from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.support.ledger import Verdict, query
from tests.support.load import CONNECTION
from tests.support.shim import shim
from tests.support.site import HASHED
from tests.system.chaos_acts import EVENTS, Faults, Operator

SECONDS = 60.0
OWNERS = 2
WEBHOOKS = 3
RECORDS = 6
"""Contacts that each owner's writer changes at a time; erased ones are replaced."""
PAUSE = (0.0, 0.1)
DRAIN_SECONDS = 90.0
SETTINGS = {
    "CARTEIRO_LIMITS__SIGN_IN_PER_MINUTE": "0",
    # Fewer than usual, so that retries run out within a run.
    "CARTEIRO_RETRY__SCHEDULE": "1,1,1,1,1",
    "CARTEIRO_RETENTION__EVENTS_DAYS": "90",
    "CARTEIRO_RETENTION__DELIVERIES_DAYS": "90",
}

LEFT = """
select (select count(*) from events where seq is null)
  + (select count(*) from deliveries where finished_at is null)
  + (select count(*) from jobs where state = 'running') + (select count(*) from erasures)
"""
STUCK = """
select webhook_id, state, ordered, origin, tries, reason from deliveries
where finished_at is null limit 5
"""
MISSING = """
select count(*) from events join webhooks on webhooks.owner_id = events.owner_id
where not exists (select 1 from deliveries
  where deliveries.event_id = events.id and deliveries.webhook_id = webhooks.id
    and deliveries.origin = 'event')
"""
ENDS = "select state, reason, count(*) from deliveries group by state, reason"
WRITTEN = "select request_id, record_id, count(*) from events group by request_id, record_id"
UNPROVEN = """
select count(*) from deliveries where state = 'delivered' and not exists (
  select 1 from attempts where delivery_id = deliveries.id and outcome = 'success')
"""
AFTER_SUCCESS = """
select count(*) from attempts a join attempts b on b.delivery_id = a.delivery_id
where a.outcome = 'success' and b.place > a.place
"""
SUCCESSES = """
select event_id, webhook_id, count(*) from attempts where outcome = 'success'
group by event_id, webhook_id
"""
IN_ORDER = """
select d.webhook_id, d.record_id, d.seq, d.id from attempts a join deliveries d
  on d.id = a.delivery_id
where d.origin = 'event' and d.webhook_id in ({webhooks}) order by a.webhook_id, a.place
"""


@dataclass
class Writer:
    """Changes contacts of one owner, one write after another for each contact."""

    site: Deployed
    key: str
    name: str
    dice: random.Random
    acked: dict[str, str] = field(default_factory=dict)
    """Record by request id: writes with a 2xx response."""
    sent: int = 0

    async def run(self, end: asyncio.Event) -> None:
        async with aiohttp.ClientSession(self.site.product.address) as http:
            await asyncio.gather(*(self._one(http, end) for _ in range(RECORDS)))

    async def _one(self, http: aiohttp.ClientSession, end: asyncio.Event) -> None:
        record = ""
        while not end.is_set():
            await asyncio.sleep(self.dice.uniform(*PAUSE))
            if self.dice.random() < 0.05:
                record = ""
            record = await self._write(http, record)

    async def _write(self, http: aiohttp.ClientSession, record: str) -> str:
        """Create or change a record; return its id, empty when there is none (any more)."""
        self.sent += 1
        request_id = f"{self.name}-{self.sent}"
        headers = {"X-API-Key": self.key, "X-Request-Id": request_id}
        method, path = ("PATCH", f"/api/contacts/{record}") if record else ("POST", "/api/contacts")
        try:
            async with http.request(
                method, path, json={"name": request_id}, headers=headers
            ) as answer:
                told = await answer.json()
                if answer.status in (200, 201):
                    self.acked[request_id] = told["id"]
                    return str(told["id"])
                return record if answer.status == 503 else ""
        except CONNECTION:
            return record


async def run_chaos(engine: Engine, seed: int, seconds: float, broken: str = "") -> Verdict:
    """Let operators, kills and clock steps act for `seconds`."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="carteiro-chaos-") as home, shim(Path(home)) as clock:
        async with deployed(
            engine, seed, owners=OWNERS, webhooks=WEBHOOKS, latency=(0.0, 0.05), broken=broken,
            settings=clock.environment | SETTINGS, started=False, events=EVENTS,
        ) as site:  # fmt: skip
            ordered = [some[0] for some in site.tenants.webhooks.values()]
            await site.run(_prepare, ordered)
            operators = [
                Operator(site, owner, f"owner{n}@example.com", random.Random(dice.random()), first)
                for n, (owner, first) in enumerate(zip(site.tenants.keys, ordered, strict=True))
            ]
            faults = Faults(site, clock, dice)
            writers = [
                Writer(site, key, f"r{seed}-{number}", random.Random(dice.random()))
                for number, key in enumerate(site.tenants.keys.values())
            ]
            await site.product.start()
            await _act(seconds, [
                *(writer.run for writer in writers), *(one.run for one in operators),
                faults.kill, faults.step, faults.change_moods,
            ])  # fmt: skip
            site.there.behave(failing=0.0)
            left = await _settled(site, operators)
            verdict = await _judged(site, seed, operators, writers)
            verdict.find(left, f"left over, such as {await query(site.url, STUCK)}")
    acts = sum((one.acts for one in operators), Counter[str]())
    verdict.find(not all(acts[name] for name in ("pause", "activate", "cancel")), "too few acts")
    verdict.figures |= {
        "acts": dict(sorted(acts.items())), "cut": sum(one.cut for one in operators),
        "kills": len(site.deaths), "clock_steps": faults.steps,
    }  # fmt: skip
    return verdict


async def _prepare(tx: Tx, ordered: Sequence[str]) -> None:
    """Give the owners a password, and each an ordered webhook."""
    await tx.run("update users set password_hash = $1", HASHED)
    for webhook_id in ordered:
        await tx.run("update webhooks set ordered = $1 where id = $2", True, webhook_id)


async def _act(seconds: float, acts: Sequence[Any]) -> None:
    end = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, end.set)
    async with asyncio.TaskGroup() as group:
        for act in acts:
            group.create_task(act(end))


async def _settled(site: Deployed, operators: Sequence[Operator]) -> int:
    """Activate all webhooks until nothing is left to do; return what is left after the time."""
    loop = asyncio.get_running_loop()
    until = loop.time() + DRAIN_SECONDS
    left = 1
    while left and loop.time() < until:
        for one in operators:
            await one.activate_all()
        await asyncio.sleep(1)
        [(left,)] = await query(site.url, LEFT)
    return int(left)


async def _judged(
    site: Deployed, seed: int, operators: Sequence[Operator], writers: Sequence[Writer]
) -> Verdict:
    verdict = Verdict(f"chaos, {site.engine}", seed)
    acked = {request: record for one in writers for request, record in one.acked.items()}
    verdict.acks = len(acked)
    written = {
        (request, record): count for request, record, count in await query(site.url, WRITTEN)
    }
    verdict.rows = sum(written.values())
    verdict.lost += verdict.find(
        sum((request, record) not in written for request, record in acked.items()),
        "acknowledged writes without an event",
    )
    verdict.unexpected += verdict.find(
        sum(written.get((request, record), 0) > 1 for request, record in acked.items()),
        "acknowledged writes with two events",
    )
    [(missing,)] = await query(site.url, MISSING)
    verdict.lost += verdict.find(missing, "events without a delivery to each webhook")
    ends = await query(site.url, ENDS)
    verdict.deliveries = sum(count for *_, count in ends)
    verdict.lost += verdict.find(
        sum(count for state, _, count in ends if state in ("dead", "gone")), f"dead or gone: {ends}"
    )
    [(unproven,)] = await query(site.url, UNPROVEN)
    verdict.lost += verdict.find(unproven, "deliveries delivered without a success")
    [(again,)] = await query(site.url, AFTER_SUCCESS)
    verdict.unexpected += verdict.find(again, "attempts after a success of the same delivery")
    await _arrivals(site, verdict)
    await _order(site, verdict, [one.always_ordered for one in operators])
    faulty = await walked(site.url, read_key_file(site.tenants.key_file, Ids()))
    verdict.find(len(faulty.faults), f"faults of the chain: {faulty.faults[:3]}")
    await _counted(site, verdict)
    verdict.figures["ends"] = sorted(f"{state} {why or ''} {count}" for state, why, count in ends)
    return verdict


async def _arrivals(site: Deployed, verdict: Verdict) -> None:
    """Compare successes at receivers with successes in the log: more only where a kill met them."""
    paths = site.load.tenants.paths
    answered = Counter(
        (receipt.event_id, paths[receipt.path.partition("?")[0]])
        for receipt in site.there.got
        if receipt.answered is not None
    )
    logged = Counter({
        (event, webhook): count for event, webhook, count in await query(site.url, SUCCESSES)
    })  # fmt: skip
    allowed = Counter(pair for met in site.deaths for pair in met)
    verdict.lost += verdict.find(
        (logged - answered).total(), "successes in the log that no receiver has"
    )
    verdict.duplicated = (answered - logged).total()
    verdict.unexpected += verdict.find(
        (answered - logged - allowed).total(), "requests accepted and not logged without a kill"
    )


async def _order(site: Deployed, verdict: Verdict, webhooks: Sequence[str]) -> None:
    """Find attempts at an earlier event of a record after an attempt at a later one."""
    named = ", ".join(f"'{webhook}'" for webhook in webhooks)
    by_record: dict[tuple[str, str], list[int]] = {}
    for webhook, record, seq, _ in await query(site.url, IN_ORDER.format(webhooks=named)):
        by_record.setdefault((webhook, record), []).append(seq)
    verdict.find(
        sum(later < earlier for seqs in by_record.values() for earlier, later in pairwise(seqs)),
        "attempts out of order",
    )


async def _counted(site: Deployed, verdict: Verdict) -> None:
    """Compare the figures of the charts with the rows that they count."""
    async with site.opened() as db:
        log = figures.in_longest(await db.read(figures.of_log))
        stored = figures.in_longest(await db.read(figures.stored))
    other = {key: (log[key], stored[key]) for key in log | stored if log[key] != stored[key]}
    shown = [(key, both) for key, both in other.items() if key[3] == "count"][:3]
    verdict.find(len(other), f"figures (rows, figure) that differ: {shown}")


@ENGINES
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_chaos(engine: Engine, seed: int) -> None:
    (await run_chaos(engine, seed, SECONDS)).must_hold()


@pytest.mark.parametrize(
    ("broken", "finding"),
    [
        ("overtakes", "attempts out of order"),
        ("sends_after_recording", "successes in the log that no receiver has"),
    ],
)
async def test_broken_rules_are_found(broken: str, finding: str) -> None:
    verdict = await run_chaos("sqlite", 1, 12.0, broken)
    assert any(finding in one for one in verdict.findings), verdict
