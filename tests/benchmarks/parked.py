"""A drain beside a million rows parked at a paused webhook, and a million scheduled for later."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from outbox import webhooks
from outbox.database.transaction import Tx
from outbox.queue.upkeep import parking
from tests.benchmarks.children import answer_of, child
from tests.benchmarks.figures import Verdict, median, quantile, rounded
from tests.benchmarks.sizes import Size
from tests.benchmarks.staging import Stage, commit_events

OWNERS = 20
OF_EMPTY = 0.9
CLAIM_MS = 5.0
MORE_MIB = 64.0
DAYS = 10
MICROSECONDS_A_DAY = 86_400_000_000

# Replays of one event: only deliveries of origin `event` are limited to one per webhook.
WAITING = """
insert into deliveries
  (id, owner_id, event_id, webhook_id, origin, state, retry, next_at, tries, attempts, record_id,
   seq, created_at)
with recursive number(n) as (select 1 union all select n + 1 from number where n < $3)
select lower(hex(randomblob(12))), owner_id, $2, id, 'replay', 'ready', $4,
  due_now() + $5, 0, 0, 'record', 0, created_at
from webhooks, number where id = $1
"""


async def parked(size: Size) -> Verdict:
    """Measure the drain rate and the claim time beside waiting rows and without them."""
    verdict = Verdict("parked")
    with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name:
        folder = Path(name)
        log = folder / "children.log"
        with child("tests.benchmarks.receiver", log=log) as receiver:
            port = receiver.json()["port"]
            await _stage(folder, f"http://127.0.0.1:{port}/hook", size)
            runs: dict[str, list[Any]] = {"empty": [], "waiting": []}
            for _ in range(size.runs):
                for what, found in runs.items():
                    stage = Stage(f"sqlite:///{folder}/run.db", folder)
                    for file in folder.glob("run.db*"):
                        file.unlink()
                    shutil.copyfile(folder / f"{what}.db", folder / "run.db")
                    spec = {"environment": stage.environment(port), "count": size.events}
                    found.append(answer_of("tests.benchmarks.drain", log, spec))
    verdict.figures |= {"parked": size.parked, "scheduled": size.parked}
    rates = {
        what: median([size.events / run["seconds"] for run in found])
        for what, found in runs.items()
    }
    verdict.figures |= {f"{what}_per_s": round(rate) for what, rate in rates.items()}
    verdict.at_least("of_empty", rates["waiting"] / rates["empty"], OF_EMPTY)
    memory = {what: median([run["rss_mib"] for run in found]) for what, found in runs.items()}
    verdict.at_most("more_mib", memory["waiting"] - memory["empty"], MORE_MIB)
    claims = {
        what: median([quantile(run["claims"], 0.99) * 1000 for run in found])
        for what, found in runs.items()
    }
    verdict.figures["empty_claim_p99_ms"] = rounded(claims["empty"])
    verdict.at_most("claim_p99_ms", claims["waiting"], CLAIM_MS)
    return verdict


async def _stage(folder: Path, url: str, size: Size) -> None:
    """Create two databases with the same committed events; one of them also has waiting rows."""
    empty = Stage(f"sqlite:///{folder}/empty.db", folder)
    await empty.prepare()
    people = await empty.people([[url]] * OWNERS)
    async with empty.opened() as db:
        await commit_events(db, [person.id for person in people], size.events)
    shutil.copyfile(folder / "empty.db", folder / "waiting.db")
    waiting = Stage(f"sqlite:///{folder}/waiting.db", folder)
    aside = await waiting.people([[url, url]], first=OWNERS)
    async with waiting.opened() as db:
        await db.write(_let_wait, aside[0].id, size.parked)


async def _let_wait(tx: Tx, owner_id: str, count: int) -> None:
    """Insert rows at a paused webhook, and as many retries of an active one, days ahead."""
    paused, active = [webhook.id for webhook in await webhooks.listed(tx, owner_id)]
    await parking.pause(tx, paused)
    event = await tx.one("select id from events limit 1")
    assert event is not None
    ahead = DAYS * MICROSECONDS_A_DAY
    await tx.run(WAITING, paused, event["id"], count, False, 0)
    await tx.run(WAITING, active, event["id"], count, True, ahead)
    await tx.run("update lanes set due_at = due_now() + $2 where webhook_id = $1", active, ahead)
    await tx.run("update lanes set due_at = due_now() where webhook_id = $1", paused)
