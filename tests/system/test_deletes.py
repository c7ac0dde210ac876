"""A big delete that is killed on its way completes; without its bound others are delayed.

The same writes measure the others before the delete and from it to the end of its dependants.
Between kills the owner reads: nothing may show deleted records.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import aiohttp
import pytest

from outbox.database.transaction import Tx
from tests.benchmarks.figures import quantile
from tests.support.crm_rows import add_activities, add_contacts
from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.support.ledger import Verdict, query
from tests.support.load import Load
from tests.support.waiting import until

SEED = 20265
P99_MS = 50.0
DELETE_MS = 300.0
"""Limit for the delete itself; on PostgreSQL a long transaction delays only its owner."""
OF_BEFORE = 2.0
"""Or so many times the p99 before the delete, on a machine that is slow by itself."""
RATE = 100.0
OWNERS = 5
KILLS = 2
LEAST_SECONDS = 8.0
"""Minimum seconds of writes beside the delete and before it."""
PATIENCE_SECONDS = 600.0
LOOK_SECONDS: dict[Engine, float] = {"sqlite": 0.05, "postgres": 0.5}
"""Seconds between looks at what is left; SQLite removes 35,000 dependants in a second.

On PostgreSQL a look is a long count on the cores of the others, whom the job would let go first.
"""
AT_ONCE = 10_000
"""Rows inserted in one unit, which has time limits on a busy machine too."""


@dataclass(frozen=True)
class Delete:
    """A record with many dependants."""

    name: str
    path: str
    body: Mapping[str, Any]
    add: Callable[[Tx, str, int, str], Awaitable[None]]
    count: int
    left: str
    """Counts the dependants of the record of the owner."""
    shown: str
    """A list that shows none of them; `{id}` is the record's id."""


CONTACT = Delete(
    "contact with activities", "/api/contacts", {"name": "Maria"}, add_activities, 100_000,
    "select count(*) from activities where owner_id = '{owner}' and related_id = '{record}'",
    "/api/activities?relatedTo={id}",
)  # fmt: skip
COMPANY = Delete(
    "company with contacts", "/api/companies", {"name": "Acme"}, add_contacts, 200_000,
    "select count(*) from contacts where owner_id = '{owner}' and company_id = '{record}'",
    "/api/contacts?companyId={id}",
)  # fmt: skip
DELETES = (CONTACT, COMPANY)

# Running totals that differ from the tables.
ASTRAY = """
select abs((select coalesce(sum(n), 0) from tallies where owner_id = '{owner}'
    and kind = 'activities') - (select count(*) from activities where owner_id = '{owner}'))
  + abs((select coalesce(sum(n), 0) from tallies where owner_id = '{owner}'
    and kind = 'contacts') - (select count(*) from contacts where owner_id = '{owner}'))
"""


async def run_delete(
    delete: Delete, engine: Engine, *, kills: int = KILLS, broken: str = ""
) -> tuple[Verdict, list[str]]:
    """Delete beside writes of others, with kills on the way; return also what was late."""
    async with deployed(
        engine, SEED, ports=[9], owners=OWNERS + 1, webhooks=0, broken=broken
    ) as site:
        product, load = site.product, site.load
        [(owner, key), *others] = load.tenants.keys.items()
        site.load = load = Load(replace(load.tenants, keys=dict(others)), SEED)

        async def ask(method: str, path: str, body: Any = None) -> Any:
            async with (
                aiohttp.ClientSession(product.address, headers={"X-API-Key": key}) as http,
                http.request(method, path, json=body) as response,
            ):
                return await response.json()

        record = (await ask("POST", delete.path, delete.body))["id"]
        one = f"{delete.path}/{record}"
        for done in range(0, delete.count, AT_ONCE):
            await site.run(delete.add, owner, min(AT_ONCE, delete.count - done), record)

        async def left() -> int:
            [(count,)] = await query(site.url, delete.left.format(owner=owner, record=record))
            return int(count)

        async def few(most: int) -> list[int]:
            count = await left()
            return [count] if count <= most else []

        verdict = Verdict(f"{delete.name}, {engine}", SEED)
        async with site.writing(RATE):
            await site.more(round(RATE * LEAST_SECONDS))
        before, kills_at, took = [*load.milliseconds], list[int](), 0.0
        for turn in range(kills + 1):
            async with site.writing(RATE):
                if not turn:
                    began = time.monotonic()
                    await ask("DELETE", one)
                    took = (time.monotonic() - began) * 1000
                # Nothing may show the record or its dependants.
                gone = await ask("GET", one)
                verdict.find(gone.get("code") != "not_found", f"the record answers {gone}")
                shown = await ask("GET", delete.shown.format(id=record))
                verdict.find(bool(shown.get("total") or shown.get("data")), "its list shows some")
                page = await ask("GET", "/api/contacts?limit=100")
                named = any("companyId" in contact for contact in page["data"])
                verdict.find(named, "contacts still name the company")
                bound = delete.count * (kills - turn) // (kills + 1)
                [now] = await until(partial(few, bound), PATIENCE_SECONDS, LOOK_SECONDS[engine])
                if turn < kills:
                    kills_at.append(now)
                    product.kill()
                else:
                    await site.more(round(RATE * LEAST_SECONDS), PATIENCE_SECONDS)
                    await until(lambda: _none_pending(site), PATIENCE_SECONDS)
            if turn < kills:
                await product.ended()
                await product.start()
        beside, at_the_end = load.milliseconds[len(before) :], await left()
        [(apart,)] = await query(site.url, ASTRAY.format(owner=owner))
    verdict.find(not all(kills_at), "kills that met no delete on its way")
    verdict.find(at_the_end or apart, f"{at_the_end} dependants left, totals {apart} apart")
    verdict.find(len(load.refused), "writes refused")
    quiet, p99 = quantile(before, 0.99), quantile(beside, 0.99)
    late = [f"p99 of others {p99:.1f} ms"] if p99 > max(P99_MS, OF_BEFORE * quiet) else []
    late += [f"the delete took {took:.0f} ms"] if took > max(DELETE_MS, 4 * quiet) else []
    verdict.figures |= {
        "dependants": delete.count, "delete_ms": round(took, 1), "left_at_kills": kills_at,
        "before_p99_ms": round(quiet, 1), "beside_p99_ms": round(p99, 1), "late": late,
    }  # fmt: skip
    return verdict, late


async def _none_pending(site: Deployed) -> bool:
    return not await query(site.url, "select 1 from pending_ends limit 1")


@ENGINES
@pytest.mark.parametrize("delete", DELETES, ids=lambda delete: delete.name)
async def test_big_deletes_are_not_felt(delete: Delete, engine: Engine) -> None:
    verdict, late = await run_delete(delete, engine)
    verdict.find(len(late), "bars missed")
    verdict.must_hold()


async def test_a_delete_of_all_at_once_is_felt_by_others() -> None:
    verdict, late = await run_delete(CONTACT, "sqlite", kills=0, broken="deletes_at_once")
    assert late, verdict
