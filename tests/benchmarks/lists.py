"""Lists of an owner with 100,000 records beside those of one with 1,000, on each engine.

Two costs may grow: a page far down reads the index entries before it, and a search reads the folded
text of each of the owner's records, because an index of trigrams finds nothing for two letters.
Both read only the owner's own records, and a search does not delay reads of single records.
"""

from __future__ import annotations

import http.client
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.sales.deals import DEALS
from gateway.records import statements, store
from gateway.records.resource import Resource
from gateway.records.values.folding import fold, fold_all
from outbox.database import sql
from outbox.database.transaction import Database, Tx
from tests.benchmarks.engines import fresh
from tests.benchmarks.figures import Verdict, in_ms, median
from tests.benchmarks.product import product
from tests.benchmarks.sizes import Size
from tests.benchmarks.staging import Person

FEW = 1_000
AT_ONCE = 1_280
"""Ten statements of the largest size that outbox.database.sql makes."""
ASKED = 31
FOUND = 10
"""Records that the search finds, in lists of any size."""
SOUGHT = quote("conceicao orgao")
SAME = 2.0
"""The maximum growth of operations with a constant cost; the rest is noise of the machine."""
PAGE = 20
STAGES = ("lead", "qualified", "proposal", "negotiation", "closing")

Values = Callable[[int, int], dict[str, Any]]


async def lists(size: Size) -> Verdict:
    """Measure medians in milliseconds, and their growth."""
    verdict = Verdict("lists")
    for engine in size.engines:
        with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name:
            async with fresh(engine, Path(name)) as stage:
                await stage.prepare()
                few, many = await stage.people([[], []])
                async with stage.opened() as db:
                    for person, count in ((few, FEW), (many, size.records)):
                        await fill(db, CONTACTS, person.id, count, contact)
                        await fill(db, DEALS, person.id, count, deal)
                    if engine == "postgres":
                        await db.write(_analyze)
                with ExitStack() as ends:
                    api = ends.enter_context(product(stage.environment(), Path(name), "api"))
                    _measure(verdict, engine, api.port, few, many, size.records)
    return verdict


def _measure(
    verdict: Verdict, engine: str, port: int, few: Person, many: Person, records: int
) -> None:
    last = records // PAGE
    far = min(500, last)
    paths = {
        "first_page": "/api/contacts",
        "search": f"/api/contacts?search={SOUGHT}",
        "pipeline_stats": "/api/deals/pipeline-stats",
    }
    took: dict[tuple[str, str], float] = {}
    for who, person in (("few", few), ("many", many)):
        for what, path in paths.items():
            took[what, who] = _asked(port, person.key, path, verdict)
    for what in paths:
        for who, count in (("few", FEW), ("many", records)):
            verdict.figures[f"{engine}_{what}_{count}_ms"] = in_ms(took[what, who])
    near_us, far_us = (
        _asked(port, many.key, f"/api/contacts?page={page}", verdict) for page in (far // 10, far)
    )
    verdict.figures[f"{engine}_page_{far}_ms"] = in_ms(far_us)
    for what in ("first_page", "pipeline_stats"):
        verdict.at_most(f"{engine}_{what}_grows", took[what, "many"] / took[what, "few"], SAME)
    verdict.at_most(f"{engine}_page_{far}_of_page_{far // 10}", far_us / near_us, 10.0)
    more = records / FEW
    verdict.at_most(f"{engine}_search_grows", took["search", "many"] / took["search", "few"], more)
    verdict.figures[f"{engine}_search_ns_a_record"] = round(1000 * took["search", "many"] / records)


def _asked(port: int, key: str, path: str, verdict: Verdict) -> float:
    """Return the median of sequential requests, in microseconds."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    found = []
    for number in range(ASKED + 3):
        began = time.perf_counter()
        connection.request("GET", path, headers={"X-API-Key": key})
        answer = connection.getresponse()
        body = answer.read()
        if number >= 3:
            found.append((time.perf_counter() - began) * 1e6)
        if answer.status != 200:
            verdict.broken.append(f"{path}: {answer.status} {body[:200]!r}")
            break
    if "search=" in path and f'"total":{FOUND},'.encode() not in body:
        verdict.broken.append(f"{path} did not find {FOUND}: {body[-100:]!r}")
    connection.close()
    return median(found)


def contact(number: int, count: int) -> dict[str, Any]:
    """Make a contact; FOUND of all, evenly spread, match the search."""
    sought = number % (count // FOUND) == 0
    return {
        "name": f"Maria da Conceição {'Órgão' if sought else 'Silva'} {number}",
        "email": f"maria{number}@example.com",
        "phone": "+55 11 98888-7777",
        "phone_e164": "+5511988887777",
        "tags": "[]",
        "source": "api",
    }


def deal(number: int, count: int) -> dict[str, Any]:
    return {
        "title": f"Supply {number}",
        "value": 100 * number,
        "currency": "BRL",
        "stage": STAGES[number % len(STAGES)],
        "status": ("open", "won", "lost")[number % 3],
        "contact_ids": "[]",
    }


async def fill(db: Database, resource: Resource, owner_id: str, count: int, values: Values) -> None:
    """Insert `count` records of an owner, as creates leave them, without events."""
    for first in range(0, count, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, count))
        await db.write(_some, resource, owner_id, [values(n, count) for n in numbers])


async def _some(tx: Tx, resource: Resource, owner_id: str, some: Sequence[dict[str, Any]]) -> None:
    rows = []
    slots: dict[int, int] = {}
    for values in some:
        record_id = tx.new_id()
        row = dict.fromkeys(statements.written(resource)) | values
        row |= {"id": record_id, "owner_id": owner_id, "version": 1, "created_at": tx.now}
        if resource.search:
            row["folded"] = fold_all([values[name] for name in resource.search])
        if resource.folded_sort:
            row["sort_name"] = fold(values[resource.folded_sort])
        rows.append(tuple(row.values()))
        slot = store.slot(record_id)
        slots[slot] = slots.get(slot, 0) + 1
    await sql.insert(tx, resource.table, statements.written(resource), rows)
    store.tally(tx, owner_id, resource.table, slots)


async def _analyze(tx: Tx) -> None:
    await tx.run("analyze contacts")
    await tx.run("analyze deals")
