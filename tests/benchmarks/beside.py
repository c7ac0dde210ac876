"""The p99 of one owner's writes beside a job of another owner, in multiples of the p99 alone."""

from __future__ import annotations

import asyncio
from urllib.request import Request, urlopen

from gateway.domain.webhooks import recoveries
from gateway.records.access import Actor
from outbox import database
from outbox.clock import SystemClock
from outbox.ids import Ids
from tests.benchmarks.figures import Size, Verdict, rounded
from tests.benchmarks.site import Place, Site, site
from tests.support.ledger import query
from tests.support.process import Serving
from tests.support.tenants import EVENT
from tests.support.waiting import in_time

LINES = 20_000
PACE, SECONDS = 200.0, 8.0
MOST_TIMES = 1.5
IMPORTED = "select sum(done) from imports"
SENT = "select sum(made) from jobs"


async def beside(size: Size) -> Verdict:
    """Measure an import, and a snapshot of what it has imported, on each engine."""
    verdict = Verdict("beside")
    for engine in size.engines:
        async with site(engine) as here, here.place("beside", owners=2) as place:
            with here.node(place) as node:
                await _measure(here, place, node, size, verdict)
    return verdict


async def _measure(
    here: Site, place: Place, node: Serving, size: Size, verdict: Verdict
) -> None:  # fmt: skip
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

    async def beside_job(name: str, text: str) -> None:
        async def begun() -> bool:
            return await done(text) > 0

        await in_time(begun, here.patience)
        before = await done(text)
        verdict.figures[f"{engine}_{name}_p99_ms"] = took = await p99()
        rows = await done(text) - before
        verdict.figures[f"{engine}_{name}_rows_per_s"] = rounded(rows / seconds)
        verdict.at_most(f"{engine}_{name}_times", took / alone, MOST_TIMES)

    await p99()
    alone = await p99()
    verdict.figures[f"{engine}_alone_p99_ms"] = alone
    lines = size.count(LINES, least=100)
    text = "name,email\n" + "".join(f"Ana {n},ana{n}@example.com\n" for n in range(lines))
    headers = {"X-API-Key": place.tenants.keys[other], "Content-Type": "text/csv"}
    status, answer = await asyncio.to_thread(_post, node, text, headers)
    if status >= 300:
        raise RuntimeError(answer)
    await beside_job("import", IMPORTED)

    async def imported() -> bool:
        return await done(IMPORTED) >= lines

    await in_time(imported, here.patience)
    await _snapshot(place, other)
    await beside_job("snapshot", SENT)


def _post(node: Serving, text: str, headers: dict[str, str]) -> tuple[int, str]:
    url = f"{node.url}/api/import/contacts"
    request = Request(url, text.encode(), headers, method="POST")
    with urlopen(request, timeout=60) as answer:
        return answer.status, answer.read().decode()


async def _snapshot(place: Place, owner_id: str) -> None:
    """Start a snapshot of the owner's contacts; the node finds it within seconds."""
    db = await database.open(place.url, clock=SystemClock(), ids=Ids())
    [webhook_id] = place.tenants.webhooks[owner_id]
    try:
        actor = Actor(owner_id, "session")
        await db.write(recoveries.start_snapshot, actor, webhook_id, [EVENT], 1_000)
    finally:
        await db.close()
