"""A big delete that is killed on its way completes; without its bound others are delayed.

The same writes measure the others before the delete and from it to the end of its dependants.
Between kills the owner reads: nothing may show deleted records.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Database, Tx
from outbox.ids import Ids
from tests.benchmarks.figures import quantile, rounded
from tests.support.crm_rows import add_activities, add_contacts
from tests.support.engines import Engine, empty_database
from tests.support.load import Load
from tests.support.product import Product
from tests.support.tenants import settle_in

P99_MS = 50.0
DELETE_MS = 300.0
"""Limit for the delete itself; on PostgreSQL a long transaction delays only its owner."""
RATE = 100.0
OWNERS = 5
KILLS = 2
LEAST_SECONDS = 8.0
"""Minimum seconds of writes beside the delete and before it."""
PATIENCE_SECONDS = 180.0
LOOK_SECONDS = 0.05
"""Seconds between looks at what is left; SQLite removes 35,000 dependants in a second."""
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
    """Counts the dependants of the record $2 of the owner $1."""
    shown: str
    """A list that shows none of them; `{id}` is the record's id."""


CONTACT = Delete(
    "contact with activities", "/api/contacts", {"name": "Maria"}, add_activities, 100_000,
    "select count(*) as n from activities where owner_id = $1 and related_id = $2",
    "/api/activities?relatedTo={id}",
)  # fmt: skip
COMPANY = Delete(
    "company with contacts", "/api/companies", {"name": "Acme"}, add_contacts, 200_000,
    "select count(*) as n from contacts where owner_id = $1 and company_id = $2",
    "/api/contacts?companyId={id}",
)  # fmt: skip
DELETES = (CONTACT, COMPANY)

PENDING = "select count(*) as n from pending_ends"
# Running totals that differ from the tables.
ASTRAY = """
select (select coalesce(sum(n), 0) from tallies where owner_id = $1 and kind = 'activities')
  - (select count(*) from activities where owner_id = $1) as activities,
  (select coalesce(sum(n), 0) from tallies where owner_id = $1 and kind = 'contacts')
  - (select count(*) from contacts where owner_id = $1) as contacts
"""


@dataclass
class _Run:
    delete: Delete
    product: Product
    load: Load
    db: Database
    owner: str
    key: str
    record: str = ""
    delete_ms: float = 0.0
    kills_at: list[int] = field(default_factory=list)
    """The dependants left at each kill."""
    slowest_start: float = 0.0
    told: list[str] = field(default_factory=list)
    """The API's responses about the record after its delete."""
    least_seconds: float = LEAST_SECONDS

    async def left(self) -> int:
        return await self._count(self.delete.left, self.owner, self.record)

    async def pending(self) -> int:
        return await self._count(PENDING)

    async def _count(self, sql: str, *args: str) -> int:
        async def unit(tx: Tx) -> int:
            row = await tx.one(sql, *args)
            return int(row["n"]) if row else 0

        return await self.db.read(unit)


async def run_delete(
    delete: Delete,
    engine: Engine,
    seed: int,
    *,
    count: int | None = None,
    kills: int = KILLS,
    seconds: float = LEAST_SECONDS,
    module: str = "gateway",
) -> dict[str, Any]:
    """Run the delete; return figures, `wrong` and `late`; `pass` requires both to be empty.

    `count` overrides the number of dependants; `seconds` is the minimum time of other writes before
    and beside it.
    """
    delete = replace(delete, count=count or delete.count)
    with tempfile.TemporaryDirectory(prefix="carteiro-deletes-") as name:
        folder = Path(name)
        async with empty_database(engine, folder) as url:
            tenants = await settle_in(url, folder, [9], owners=OWNERS + 1, webhooks=0)
            [owner, *_] = tenants.keys
            others = replace(tenants, keys={o: k for o, k in tenants.keys.items() if o != owner})
            product = Product(folder, url, tenants.key_file, module=module)
            db = await database.open(url, clock=SystemClock(), ids=Ids())
            run = _Run(
                delete, product, Load(others, seed), db, owner, tenants.keys[owner],
                least_seconds=seconds,
            )  # fmt: skip
            try:
                return await _measure(run, engine, kills)
            finally:
                await product.close()
                await db.close()


async def _measure(run: _Run, engine: Engine, kills: int) -> dict[str, Any]:
    load, product = run.load, run.product
    await product.start()
    run.record = (await _ask(run, "POST", run.delete.path, run.delete.body))["id"]
    for done in range(0, run.delete.count, AT_ONCE):
        count = min(AT_ONCE, run.delete.count - done)
        await run.db.write(run.delete.add, run.owner, count, run.record)
    async with load.writing(product.address, rate=RATE):
        await load.until_sent(load.count + round(RATE * run.least_seconds))
    before = [*load.milliseconds]
    began = time.monotonic()
    for turn in range(kills + 1):
        async with load.writing(product.address, rate=RATE):
            if not turn:
                await _delete(run)
            await _unchanged(run)
            if not await _until_left(run, kills - turn, kills):
                break
            if turn < kills:
                product.kill()
        await product.ended()
        run.slowest_start = max(run.slowest_start, await product.start())
    seconds = time.monotonic() - began
    beside = load.milliseconds[len(before) :]
    return await _record(run, engine, kills, before, beside, seconds)


async def _delete(run: _Run) -> None:
    began = time.monotonic()
    await _ask(run, "DELETE", f"{run.delete.path}/{run.record}")
    run.delete_ms = (time.monotonic() - began) * 1000


async def _until_left(run: _Run, parts: int, kills: int) -> bool:
    """Wait until `parts` of the dependants are left, of one more than `kills`; False at the end."""
    began = time.monotonic()
    bound = run.delete.count * parts // (kills + 1)
    while (left := await run.left()) > bound or (not parts and await run.pending()):
        if time.monotonic() - began > PATIENCE_SECONDS:
            return False
        await asyncio.sleep(LOOK_SECONDS)
    if parts and left:
        run.kills_at.append(left)
        return True
    await asyncio.sleep(max(run.least_seconds - (time.monotonic() - began), 0.0))
    return False


async def _unchanged(run: _Run) -> None:
    """Read the record and its dependants, which must not show."""
    gone = await _ask(run, "GET", f"{run.delete.path}/{run.record}")
    if gone.get("code") != "not_found":
        run.told.append(f"the record answers {gone}")
    shown = await _ask(run, "GET", run.delete.shown.format(id=run.record))
    if shown.get("total") or shown.get("data"):
        run.told.append(f"its list still counts {shown['total']}")
    page = await _ask(run, "GET", "/api/contacts?limit=100")
    if any("companyId" in contact for contact in page["data"]):
        run.told.append("contacts still name the company")


async def _ask(run: _Run, method: str, path: str, body: Any = None) -> dict[str, Any]:
    headers = {"X-API-Key": run.key}
    async with (
        aiohttp.ClientSession(run.product.address, headers=headers) as http,
        http.request(method, path, json=body) as response,
    ):
        found: dict[str, Any] = await response.json()
        return found


async def _record(
    run: _Run, engine: Engine, kills: int, before: list[float], beside: list[float], seconds: float
) -> dict[str, Any]:
    async def astray(tx: Tx) -> int:
        row = await tx.one(ASTRAY, run.owner)
        return sum(abs(row[kind]) for kind in ("activities", "contacts")) if row else -1

    p99 = quantile(beside, 0.99) if beside else float("inf")
    left, pending, apart = await run.left(), await run.pending(), await run.db.read(astray)
    late = []
    if p99 > P99_MS:
        late.append(f"p99 of others' writes {p99:.1f} ms beside the delete")
    if run.delete_ms > DELETE_MS:
        late.append(f"the delete itself took {run.delete_ms:.0f} ms")
    wrong = [*run.told]
    if len(run.kills_at) < kills:
        wrong.append(f"killed {len(run.kills_at)} times on the way, wanted {kills}")
    if left or pending or apart:
        wrong.append(f"{left} dependants, {pending} notes, totals {apart} apart at the end")
    if run.load.refused:
        wrong.append(f"{len(run.load.refused)} writes refused")
    return {
        "delete": run.delete.name,
        "engine": engine,
        "dependants": run.delete.count,
        "delete_ms": rounded(run.delete_ms),
        "seconds_to_the_end": rounded(seconds),
        "left_at_kills": run.kills_at,
        "slowest_start_s": rounded(run.slowest_start),
        "before": _figures(before),
        "beside": _figures(beside),
        "left": left,
        "pending": pending,
        "writes_cut_by_kills": len(run.load.broken),
        "wrong": wrong,
        "late": late,
        "findings": wrong + late,
        "pass": not wrong and not late,
    }


def _figures(milliseconds: list[float]) -> dict[str, float]:
    if not milliseconds:
        return {"writes": 0}
    return {
        "writes": len(milliseconds),
        "p50_ms": rounded(quantile(milliseconds, 0.5)),
        "p99_ms": rounded(quantile(milliseconds, 0.99)),
        "worst_ms": rounded(max(milliseconds)),
    }


SEED = 20265
UNBOUNDED = "tests.system.unbounded_serve"

every_delete = pytest.mark.parametrize("delete", DELETES, ids=lambda delete: delete.name)


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("delete", "engine"), [(CONTACT, "sqlite"), (COMPANY, "postgres")], ids=["sqlite", "postgres"]
)
async def test_a_killed_delete_leaves_nothing_over(delete: Delete, engine: Engine) -> None:
    told = await run_delete(delete, engine, SEED, count=40_000, kills=1, seconds=1.0)
    assert not told["wrong"], told


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("sqlite", marks=pytest.mark.slow),
        pytest.param("postgres", marks=pytest.mark.proof),
    ],
)
async def test_a_delete_of_all_at_once_is_felt_by_others(engine: Engine) -> None:
    told = await run_delete(CONTACT, engine, SEED, kills=0, module=UNBOUNDED)
    assert not told["wrong"], told
    assert told["late"], told


@pytest.mark.proof
@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@every_delete
async def test_big_deletes_are_not_felt(delete: Delete, engine: Engine) -> None:
    told = await run_delete(delete, engine, SEED)
    assert told["pass"], told
