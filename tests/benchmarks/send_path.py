"""Committed events drained to a receiver, against a bare loop that signs and posts the same.

The rate is that of the receiver, from the first request to the last. `beside` drains them beside a
million deliveries that wait at a paused webhook, and as many that are due in ten days (R16).
"""

from __future__ import annotations

import json
import re
import shutil
from statistics import median

from outbox import database
from outbox.clock import SystemClock
from outbox.durations import DAY
from outbox.ids import Ids
from outbox.queue.upkeep import parking
from tests.benchmarks.children import answer_of
from tests.benchmarks.figures import Size, Verdict, rounded
from tests.benchmarks.receiver import told
from tests.benchmarks.site import Place, Site, site
from tests.support.drain import add_webhook, make, ring
from tests.support.ledger import query
from tests.system.staging import pile_up

EVENTS = 20_000
OWNERS = 20
CROWD = "c" * 24
WAITING = 1_000_000
OF_BARE = 0.85
OF_EMPTY = 0.9
CLAIM_OF_EMPTY = 1.5


async def send_path(size: Size) -> Verdict:
    """Measure deliveries per second, SQLite FULL, and the product's own time of a claim."""
    verdict, events = Verdict("send_path"), size.count(EVENTS, least=100)
    found: dict[str, list[float]] = {"bare": [], "drain": [], "beside": []}
    claim_ms: dict[str, list[float]] = {"drain": [], "beside": []}
    async with site() as here, here.place("full", owners=OWNERS) as place:
        file, posted = place.folder / "carteiro.db", place.folder / "events.json"
        with here.node(place, "api") as api:
            await here.load(api.port, place.writes(), total=events)
        made = await query(place.url, "select id, body from events")
        posted.write_text(json.dumps([(event, bytes(body).decode()) for event, body in made]))
        shutil.copyfile(file, kept := place.folder / "drain.db")
        await _let_wait(here, place, size.count(WAITING))
        file.rename(place.folder / "beside.db")
        bare = ("send", f"http://127.0.0.1:{here.port}/hook", str(posted))
        for _ in range(size.runs):
            told(here.port, "report")
            answer_of("tests.benchmarks.bare", *bare, log=here.log)
            found["bare"].append(_rate(here, events))
            for side, times in claim_ms.items():
                shutil.copyfile(kept.with_stem(side), file)
                goal = told(here.port, "report")["count"] + events
                with here.node(place, "worker") as node:
                    await here.arrived(goal)
                    found[side].append(_rate(here, events))
                    page = node.ask("/metrics")[1].decode()
                times.append(_claim_ms(page))
                for left in place.folder.glob("carteiro.db*"):
                    left.unlink()
    rates = {side: median(each) for side, each in found.items()}
    verdict.figures |= {"events": events, "waiting": 2 * size.count(WAITING)}
    verdict.figures |= {f"{side}_per_s": round(rate) for side, rate in rates.items()}
    verdict.figures |= {f"{s}_claim_ms": rounded(median(each)) for s, each in claim_ms.items()}
    verdict.at_least("of_bare", rates["drain"] / rates["bare"], OF_BARE)
    verdict.at_least("of_empty", rates["beside"] / rates["drain"], OF_EMPTY)
    claim = median(claim_ms["beside"]) / median(claim_ms["drain"])
    verdict.at_most("claim_of_empty", claim, CLAIM_OF_EMPTY)
    return verdict


async def _let_wait(here: Site, place: Place, count: int) -> None:
    """Insert deliveries of a paused webhook, and as many of an active one for later."""
    db = await database.open(place.url, clock=SystemClock(), ids=Ids())
    url, key = f"http://127.0.0.1:{here.port}/crowd", ring()
    event = await db.write(make, "crowd", "other.made", CROWD)
    for later in (0, 10 * DAY):
        webhook, _ = await add_webhook(db, key, url, "none.made", owner=CROWD)
        await db.write(pile_up, [webhook], event, count, later=later)
        if not later:
            await db.write(parking.pause, webhook)
    await db.close()


def _rate(here: Site, events: int) -> float:
    """Return the rate of what has arrived since the last report."""
    seen = told(here.port, "report")
    if len(seen["rows"]) != events:
        raise RuntimeError(f"{len(seen['rows'])} of {events} have arrived")
    return float((events - 1) / (seen["latest"] - seen["first"]))


def _claim_ms(page: str) -> float:
    """Return the mean time of a claim by a page of metrics."""
    found = dict(re.findall(r"^outbox_claim_duration_seconds_(sum|count) (.+)$", page, re.M))
    return 1000 * float(found["sum"]) / float(found["count"])
