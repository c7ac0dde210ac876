"""The console's lists and searches beside a million events and deliveries, on each engine.

One owner has 50 webhooks and all rows; the records were written in the order of the events, each
several times. A page must be there within 200 ms; one that examines many rows one by one, within
half a second.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from outbox import webhooks
from outbox.database.sql import items
from outbox.database.transaction import Database, Tx
from outbox.events.marks import BLOCK, Marks
from outbox.webhooks import Draft
from tests.benchmarks.engines import fresh
from tests.benchmarks.figures import Verdict, in_ms, median, quantile
from tests.benchmarks.sizes import Size
from tests.support.console import CONFIG, Forms, guest
from tests.support.drain import ring
from tests.support.site import serving

PAGE_MS = 200.0
SEARCH_MS = 500.0
WEBHOOKS = 50
RECORDS = 5
"""Events are of one record in so many."""
AT_ONCE = 50_000
ASKED = 20
STEP = 2_000_000
"""Microseconds between two events: a million in 23 days."""

NUMBERS = """
with recursive number(n) as (
  select cast($2 as bigint) union all select n + 1 from number where n < $3 - 1)
"""


def _hex(number: str) -> str:
    return f"/*sqlite printf('%012x', {number})*/ /*postgres lpad(to_hex({number}), 12, '0')*/"


AT = f"($4 + n * {STEP})"
EVENT_ID = f"{_hex(f'{AT} / 1000')} || {_hex('n')}"
RECORD_ID = f"{_hex('7')} || {_hex('n % $5')}"
EVENTS = f"""
insert into events (id, seq, owner_id, name, record_id, record_version, occurred_at, request_id,
  body, body_digest)
{NUMBERS}
select {EVENT_ID}, n, $1, case when n % 1000 = 3 then 'deal.created' else 'contact.updated' end,
  {RECORD_ID}, 1, {AT}, {_hex("8")} || {_hex("n")}, $6, '' from number
"""
NTH = """/*sqlite json_extract($1, '$[' || (n % 50) || ']')*/
  /*postgres cast($1 as json) ->> cast(n % 50 as integer)*/"""
DELIVERIES = f"""
insert into deliveries (id, owner_id, event_id, webhook_id, origin, state, retry, next_at, tries,
  attempts, record_id, seq, created_at, finished_at, last_outcome, last_status)
{NUMBERS}
select {_hex(f"{AT} / 1000")} || {_hex("n + 1")}, $6, {EVENT_ID}, {NTH}, 'event',
  case when n % 500 = 9 then 'exhausted' else 'delivered' end, false, n, 1, 1, {RECORD_ID}, n,
  {AT}, {AT}, 'success', case when n % 100000 = 17 then 207 else 200 end
from number
"""
BODY = b'{"event":"contact.updated","timestamp":1795375440,"data":{"name":"' + b"n" * 300 + b'"}}'


async def console_history(size: Size) -> Verdict:
    """Measure the pages in milliseconds over HTTP, and what marking the events costs."""
    verdict = Verdict("console_history")
    verdict.figures |= {"events": size.parked, "webhooks": WEBHOOKS}
    for engine in size.engines:
        with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name:
            async with fresh(engine, Path(name)) as stage:
                await stage.prepare()
                async with stage.opened() as db, serving(db, CONFIG) as site:
                    owner_id = await site.user()
                    start = db.clock.wall() - (size.parked + 1) * STEP
                    await _fill(db, owner_id, size.parked, start)
                    await _mark(verdict, db, size.parked)
                    async with guest(site) as browser:
                        await browser.sign_in()
                        await _measure_all(verdict, browser, engine, size.parked, start)
    return verdict


async def _fill(db: Database, owner_id: str, count: int, start: int) -> None:
    keys, ids = ring(), []
    for number in range(WEBHOOKS):
        draft = Draft(url=f"https://shop{number}.example/hook", events=("contact.created",))
        ids.append(
            await db.write(
                webhooks.create, owner_id=owner_id, draft=draft, secret="whsec_", ring=keys
            )
        )
    records, done = max(count // RECORDS, 1), 0
    while done < count:
        last = min(done + AT_ONCE, count)
        await db.write(_write, owner_id, ids, done, last, start, records)
        done = last
    await db.write(_finish, count - 1)


async def _write(
    tx: Tx, owner_id: str, ids: list[str], first: int, last: int, start: int, records: int
) -> None:
    await tx.run(EVENTS, owner_id, first, last, start, records, BODY)
    await tx.run(DELIVERIES, items(ids), first, last, start, records, owner_id)


async def _finish(tx: Tx, seq: int) -> None:
    await tx.run("update outbox_state set seq = $1", seq)
    if tx.engine == "postgres":
        # As autovacuum does some time after so many inserts.
        await tx.run("analyze")


async def _mark(verdict: Verdict, db: Database, count: int) -> None:
    used = time.process_time()
    await Marks(db).run_once()
    spent = time.process_time() - used
    if count >= BLOCK:
        marked = count // BLOCK * BLOCK
        verdict.figures[f"{db.engine}_mark_us_per_event"] = round(1e6 * spent / marked, 2)


async def _measure_all(
    verdict: Verdict, browser: Forms, engine: str, count: int, start: int
) -> None:
    def record(number: int) -> str:
        return f"{7:012x}{number % max(count // RECORDS, 1):012x}"

    middle = count // 2
    at = start + middle * STEP
    event_id = f"{at // 1000:012x}{middle:012x}"
    for page in ("deliveries", "events"):
        for name, query, bar in (
            ("all", "", PAGE_MS), ("event", "event=deal.created", SEARCH_MS),
            ("record", f"q={record(middle)}", PAGE_MS),
            ("request", f"q={8:012x}{middle:012x}", PAGE_MS),
            ("event_id", f"q={event_id}", PAGE_MS), ("unknown", "q=no-such-request", PAGE_MS),
            ("failed", "state=failed", PAGE_MS), ("status", "status=207", SEARCH_MS),
            ("waiting", "state=waiting", PAGE_MS),
        ):  # fmt: skip
            if page == "deliveries" or name not in ("failed", "status", "waiting"):
                found = count >= BLOCK and name not in ("waiting", "unknown", "status")
                path = f"/console/{page}?{query}"
                await _measure(verdict, browser, f"{engine}_{page}_{name}", path, bar, found)
    await _measure(
        verdict, browser, f"{engine}_event_page", f"/console/events/{event_id}", PAGE_MS, True
    )


async def _measure(
    verdict: Verdict, browser: Forms, name: str, path: str, bar: float, found: bool
) -> None:
    took, cpu = [], []
    for _ in range(ASKED):
        began, used = time.perf_counter(), time.process_time()
        page = await browser.get(path)
        took.append((time.perf_counter() - began) * 1e6)
        cpu.append((time.process_time() - used) * 1e6)
        if page.status != 200 or (found and 'scope="row"' not in page.html):
            verdict.broken.append(f"{name}: {page.status}, or nothing found")
            break
    verdict.figures[f"{name}_cpu_ms"] = in_ms(median(cpu))
    # Other load on the machine may delay one in ten.
    verdict.at_most(f"{name}_p90_ms", in_ms(quantile(took, 0.9)), bar)
