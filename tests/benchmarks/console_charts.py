"""The console's overview and a webhook's page beside a million attempts, on each engine.

One owner has 50 webhooks with the figures of 30 days; at ten of them more deliveries wait than a
page counts. A page must be there within 200 ms.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from outbox import webhooks
from outbox.database.transaction import Database, Tx
from outbox.queue.state.figures import HOUR, STEP
from outbox.queue.state.lanes import due_now
from outbox.webhooks import Draft
from tests.benchmarks.engines import fresh
from tests.benchmarks.figures import Verdict, in_ms, median, quantile
from tests.benchmarks.sizes import Size
from tests.support.console import CONFIG, Forms, guest
from tests.support.drain import ring
from tests.support.figures import fill
from tests.support.site import serving

PAGE_MS = 200.0
WEBHOOKS = 50
BACKLOGS = 10
WAITING = 20_000
AT_ONCE = 50_000
ASKED = 20

NUMBERS = """
with recursive number(n) as (
  select cast($2 as bigint) union all select n + 1 from number where n < $3 - 1)
"""
DELIVERY_ID = "/*sqlite printf('%024x', n)*/ /*postgres lpad(to_hex(n), 24, '0')*/"
DELIVERIES = f"""
insert into deliveries (id, owner_id, event_id, webhook_id, origin, state, retry, next_at, tries,
  attempts, record_id, seq, created_at, finished_at)
{NUMBERS}
select {DELIVERY_ID}, 'owner', 'event', $1, 'replay', 'delivered', false, n, 1, 1, 'record', n, n, n
from number
"""
ATTEMPTS = f"""
insert into attempts (owner_id, delivery_id, webhook_id, event_id, number, kind, outcome, status,
  started_at, total_us, url, request_headers, response_headers, response_body, truncated, node_id)
{NUMBERS}
select 'owner', {DELIVERY_ID}, $1, 'event', 1, 'event', 'success', 200, n, 1000,
  'https://shop.example/hook', $4, $4, null, false, 'node'
from number
"""
READY = f"""
insert into deliveries (id, owner_id, event_id, webhook_id, origin, state, retry, next_at, tries,
  attempts, record_id, seq, created_at)
{NUMBERS}
select {DELIVERY_ID}, 'owner', 'event', $1, 'replay', 'ready', n % 2 = 0, $4 + n, 0, 0, 'record',
  n, $4 from number
"""
HEADERS = (
    '[["content-type", "application/json"], ["x-webhook-signature", "sha256=' + "0" * 64 + '"]]'
)


async def console_charts(size: Size) -> Verdict:
    """Measure the pages in milliseconds over HTTP, for each range."""
    verdict = Verdict("console_charts")
    verdict.figures |= {"attempts": size.parked, "webhooks": WEBHOOKS}
    for engine in size.engines:
        with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name:
            async with fresh(engine, Path(name)) as stage:
                await stage.prepare()
                async with stage.opened() as db, serving(db, CONFIG) as site:
                    ids = await _fill(db, await site.user(), size.parked)
                    async with guest(site) as browser:
                        await browser.sign_in()
                        for path in ("/console", f"/console/webhooks/{ids[0]}"):
                            for stretch in ("24h", "30d"):
                                name = f"{engine}_{path.split('/')[-2] or 'overview'}_{stretch}"
                                await _measure(verdict, browser, name, f"{path}?range={stretch}")
    return verdict


async def _fill(db: Database, owner_id: str, attempts: int) -> list[str]:
    keys, ids, now = ring(), [], db.clock.wall()
    for number in range(WEBHOOKS):
        draft = Draft(url=f"https://shop{number}.example/hook", events=("contact.created",))
        ids.append(
            await db.write(
                webhooks.create, owner_id=owner_id, draft=draft, secret="whsec_", ring=keys
            )
        )
        await db.write(fill, ids[-1], now, _shape)
    due, done = await db.read(due_now), 0
    while done < attempts:
        last = min(done + AT_ONCE, attempts)
        await db.write(_log, ids[done // AT_ONCE % WEBHOOKS], done, last)
        done = last
    waiting = min(WAITING, attempts)
    for webhook_id in ids[:BACKLOGS]:
        await db.write(_wait, webhook_id, done, done + waiting, due - HOUR)
        done += waiting
    if db.engine == "postgres":
        await db.write(_analyze)
    return ids


async def _analyze(tx: Tx) -> None:
    """As autovacuum does some time after so many inserts."""
    await tx.run("analyze")


def _shape(at: int) -> list[tuple[str, int, int]]:
    """Together a million attempts in 30 days: a tenth of the steps has an error of the server."""
    place = at // STEP
    return [
        ("success", 2 + place % 2, 30_000), ("http_5xx", place % 10 == 0, 9_000),
        ("timeout", place % 50 == 0, 15_000_000),
    ]  # fmt: skip


async def _log(tx: Tx, webhook_id: str, first: int, last: int) -> None:
    await tx.run(DELIVERIES, webhook_id, first, last)
    await tx.run(ATTEMPTS, webhook_id, first, last, HEADERS)


async def _wait(tx: Tx, webhook_id: str, first: int, last: int, due: int) -> None:
    await tx.run(READY, webhook_id, first, last, due)


async def _measure(verdict: Verdict, browser: Forms, name: str, path: str) -> None:
    took, cpu = [], []
    for _ in range(ASKED):
        began, used = time.perf_counter(), time.process_time()
        page = await browser.get(path)
        took.append((time.perf_counter() - began) * 1e6)
        cpu.append((time.process_time() - used) * 1e6)
        if page.status != 200 or "<path" not in page.html:
            verdict.broken.append(f"{name}: {page.status}")
    verdict.figures[f"{name}_kb"] = len(page.html.encode()) // 1024
    verdict.figures[f"{name}_cpu_ms"] = in_ms(median(cpu))
    verdict.figures[f"{name}_median_ms"] = in_ms(median(took))
    # Other load on the machine may delay one in ten.
    verdict.at_most(f"{name}_p90_ms", in_ms(quantile(took, 0.9)), PAGE_MS)
