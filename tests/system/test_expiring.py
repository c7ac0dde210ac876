"""R17: rows past their time go beside writes, which stay quick, and nothing else goes."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import asyncpg

from outbox.ids import Ids
from outbox.webhooks.key_files import read_key_file
from tests.benchmarks.figures import quantile
from tests.support.chains import walked
from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.support.ledger import judge, query, read_rows
from tests.support.old_rows import PER_EVENT, RECORD, OldRows
from tests.support.waiting import until

SEED = 17_260
ROWS, YOUNG = 200_000, 1_000
PATIENCE = 400.0
LOOK_SECONDS = 0.5
P99_MS = 100.0
OF_BEFORE = 2.0
"""Or so many times what it is once nothing expires any more."""
WAL_MIB = 64.0
MORE_MIB = 64.0
"""How much the file may grow beyond its size at the start."""
LEFT_SHARE = 0.5
"""How much of the file may be left at the end; pages that stay free for new rows are a tenth."""
FEW_MIB = 8.0
"""The schema, the rows that stay, and those of the load."""
MIB = 2**20

WAITING = f"""
select (select count(*) from events where seq is null)
  + (select count(*) from deliveries where record_id <> '{RECORD}'
     and state in ('ready', 'in_flight'))
"""
FILLED = f"select count(*) from deliveries where record_id = '{RECORD}'"
# The file has been made smaller by then.
ENDED = "select count(*) from duties where name = 'retention' and ended_at is not null"
KEPT = f"""
select state, count(*) from deliveries where record_id = '{RECORD}' group by state order by state
"""
FORGET = (
    f"delete from deliveries where record_id = '{RECORD}'",
    f"delete from events where record_id = '{RECORD}'",
)


@ENGINES
async def test_old_rows_expire_under_load(engine: Engine) -> None:
    """Finished deliveries with their attempts and events expire beside writes."""
    async with deployed(engine, SEED, owners=3, started=False) as site:
        owner, webhooks = next(iter(site.tenants.webhooks.items()))
        async with site.opened() as db:
            old = OldRows(db, owner, webhooks, SEED)
            await old.add(ROWS, 40)
            await old.add(YOUNG, 40, finished=False)
            await old.add(YOUNG, 1)
        load, before = site.load, await _sizes(site.url)
        most, ended, began = dict(before), 0, time.monotonic()
        await site.product.start()
        async with site.writing():
            while not ended and time.monotonic() - began < PATIENCE:
                await asyncio.sleep(LOOK_SECONDS)
                ended = await _count(site.url, ENDED)
                for what, size in (await _sizes(site.url)).items():
                    most[what] = max(most[what], size)
            seconds, beside = time.monotonic() - began, len(load.milliseconds)
            await site.more(300)
        left = await _count(site.url, FILLED) - 2 * YOUNG
        await until(lambda: _none_waits(site), 60)
        await site.product.stop()
        after = await _sizes(site.url)
        chain = await walked(site.url, read_key_file(site.tenants.key_file, Ids()))
        kept = await query(site.url, KEPT)
        events = await _count(site.url, f"select count(*) from events where record_id = '{RECORD}'")
        for statement in FORGET:
            await _change(site.url, statement)
        verdict = judge(f"expiry, {engine}", load, await read_rows(site.url), site.there.got)
    p99, quiet = (
        quantile(times, 0.99) for times in (load.milliseconds[:beside], load.milliseconds[beside:])
    )
    verdict.find(not ended, f"it did not end in {PATIENCE:.0f} s")
    verdict.find(left, "expired deliveries left")
    verdict.find(kept != [("delivered", YOUNG), ("ready", YOUNG)], f"kept rows: {kept}")
    verdict.find(events != 2 * YOUNG // PER_EVENT, f"kept events: {events}")
    verdict.find(len(chain.faults), f"chains broken: {chain.faults[:1]}")
    verdict.find(p99 > max(P99_MS, OF_BEFORE * quiet), f"writes took {p99} ms, then {quiet}")
    verdict.find(len(load.refused) + len(load.broken), "writes refused")
    if engine == "sqlite":
        grown = most["file"] - before["file"]
        verdict.find(grown > MORE_MIB, f"the file grew by {grown:.0f} MiB")
        verdict.find(most["wal"] > WAL_MIB, f"the WAL had {most['wal']:.0f} MiB")
        least = before["file"] * LEFT_SHARE + FEW_MIB
        verdict.find(after["file"] > least, "the file did not shrink")
    verdict.figures |= {
        "expired": ROWS, "purge_seconds": round(seconds, 1), "beside_p99_ms": round(p99, 1),
        "rows_per_second": round(ROWS * (2 + 1 / PER_EVENT) / seconds),
        "file_mib": [round(before["file"]), round(most["file"]), round(after["file"])],
        "wal_mib": round(most["wal"], 1), "attempts_verified": chain.attempts,
    }  # fmt: skip
    verdict.must_hold()


async def _sizes(url: str) -> dict[str, float]:
    """Return the sizes of the database and of its WAL in MiB."""
    if url.startswith("sqlite"):
        file = Path(url.removeprefix("sqlite:///"))
        wal = Path(f"{file}-wal")
        return {
            "file": file.stat().st_size / MIB,
            "wal": wal.stat().st_size / MIB if wal.exists() else 0.0,
        }
    return {
        "file": await _count(url, "select pg_database_size(current_database())") / MIB,
        "wal": 0.0,
    }


async def _count(url: str, statement: str) -> int:
    [(count,)] = await query(url, statement)
    return int(count)


async def _none_waits(site: Deployed) -> bool:
    return await _count(site.url, WAITING) == 0


async def _change(url: str, statement: str) -> None:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file, file:
            file.execute(statement)
        return
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
