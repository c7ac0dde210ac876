"""The p99 of one owner's writes beside each job of another owner, in multiples of the p99 alone.

The jobs: an import, a snapshot and replays of what it has imported, and erasures of those persons.
tests/gateway/cli/moving/test_live_costs.py measures the same beside a move.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from urllib.request import Request, urlopen

from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.privacy import certificates
from gateway.domain.webhooks import recoveries
from gateway.records.audit import Actor
from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.ids import Ids
from outbox.queue.replays.jobs import FASTEST, Draft
from tests.benchmarks.figures import Size, Verdict, rounded
from tests.benchmarks.site import Place, Site, site
from tests.support.ledger import query
from tests.support.process import Serving
from tests.support.tenants import EVENT
from tests.support.waiting import in_time

LINES = 20_000
PERSONS = 1_000
"""Persons whose erasure is asked for at once."""
PACE, SECONDS = 200.0, 8.0
MOST_TIMES = 1.5

Start = Callable[[Place, Serving, str, int], Awaitable[None]]


async def beside(size: Size) -> Verdict:
    """Measure each job on each engine."""
    verdict = Verdict("beside")
    for engine in size.engines:
        async with site(engine) as here, here.place("beside", owners=2) as place:
            with here.node(place) as node:
                await _measure(here, place, node, size, verdict)
    return verdict


async def _measure(here: Site, place: Place, node: Serving, size: Size, verdict: Verdict) -> None:
    engine = "sqlite" if here.cluster is None else "postgres"
    writes = place.writes()[:1]
    *_, other = place.tenants.keys
    seconds = size.seconds(SECONDS)

    async def p99() -> float:
        done = await here.load(node.port, writes, per_second=PACE, seconds=seconds, warm_up=0.2)
        return float(done["p99_ms"])

    async def done(text: str) -> int:
        [(count,)] = await query(place.url, text)
        return int(count or 0)

    async def at_rest() -> bool:
        return await done(RUNNING) == 0

    await p99()
    for name, (start, progress) in JOBS.items():
        if not await in_time(at_rest, here.patience):
            verdict.broken.append(f"{engine}: another job still ran before {name}")
        alone = await p99()
        await start(place, node, other, size.count(LINES, least=100))

        async def begun(text: str = progress) -> bool:
            return await done(text) > 0

        await in_time(begun, here.patience)
        before = await done(progress)
        beside = await p99()
        rows = await done(progress) - before
        verdict.figures |= {
            f"{engine}_{name}_alone_p99_ms": alone,
            f"{engine}_{name}_p99_ms": beside,
            f"{engine}_{name}_rows_per_s": rounded(rows / seconds),
        }
        verdict.at_most(f"{engine}_{name}_times", beside / alone, MOST_TIMES)
        if not rows:
            verdict.broken.append(f"{engine}: {name} had ended before the writes")


async def _import(place: Place, node: Serving, owner_id: str, lines: int) -> None:
    text = "name,email\n" + "".join(f"Ana {n},ana{n}@example.com\n" for n in range(lines))
    headers = {"X-API-Key": place.tenants.keys[owner_id], "Content-Type": "text/csv"}
    request = Request(f"{node.url}/api/import/contacts", text.encode(), headers, method="POST")
    # urlopen raises for a refusal.
    (await asyncio.to_thread(urlopen, request, timeout=60)).close()


async def _snapshot(place: Place, _: Serving, owner_id: str, __: int) -> None:
    [webhook_id] = place.tenants.webhooks[owner_id]

    async def start(db: Database, actor: Actor) -> None:
        await db.write(recoveries.start_snapshot, actor, webhook_id, [EVENT], FASTEST)

    await _store(place, owner_id, start)


async def _replays(place: Place, _: Serving, owner_id: str, lines: int) -> None:
    [webhook_id] = place.tenants.webhooks[owner_id]
    draft = Draft(("delivered",), None, 0, time.time_ns() // 1_000, FASTEST)

    async def start(db: Database, actor: Actor) -> None:
        await db.write(recoveries.start, actor, webhook_id, draft, lines)

    await _store(place, owner_id, start)


async def _erasures(place: Place, _: Serving, owner_id: str, lines: int) -> None:
    text = f"select id from contacts where owner_id = '{owner_id}' limit {min(PERSONS, lines)}"
    ids = [row[0] for row in await query(place.url, text)]

    async def start(db: Database, actor: Actor) -> None:
        for contact_id in ids:
            await db.write(certificates.request, actor, CONTACTS, contact_id)

    await _store(place, owner_id, start)


async def _store(
    place: Place, owner_id: str, start: Callable[[Database, Actor], Awaitable[None]]
) -> None:
    """Store a job; the node finds it within seconds."""
    db = await database.open(place.url, clock=SystemClock(), ids=Ids())
    try:
        await start(db, Actor(owner_id, "session"))
    finally:
        await db.close()


JOBS: dict[str, tuple[Start, str]] = {
    "import": (_import, "select sum(done) from imports"),
    "snapshot": (_snapshot, "select sum(made) from jobs where kind = 'snapshot'"),
    "replays": (_replays, "select sum(made) from jobs where kind = 'recover'"),
    "erasures": (
        _erasures, "select count(*) from person_erasures where stage not in ('lines', 'records')"
    ),
}  # fmt: skip
"""How each job begins, and how many rows it has done."""
RUNNING = """
select (select count(*) from jobs where state = 'running')
  + (select count(*) from imports where state in ('uploading', 'waiting', 'running'))
  + (select count(*) from person_erasures where stage in ('lines', 'records', 'responses'))
"""
