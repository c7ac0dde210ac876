"""R17: rows past their time go beside writes, which stay quick, and nothing else goes."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.ids import Ids
from outbox.webhooks.key_files import read_key_file
from tests.support.chains import walked
from tests.support.engines import Engine, empty_database
from tests.support.faults import LARGE
from tests.support.ledger import judge, query, read_rows
from tests.support.load import Load
from tests.support.old_rows import PER_EVENT, RECORD, OldRows
from tests.support.product import Product
from tests.support.recipients import recipients
from tests.support.tenants import settle_in
from tests.support.waiting import until

OWNERS = 3
RATE = 50.0
LOOK_SECONDS = 0.5
P99_MS = 100.0
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
FORGET = (
    f"delete from deliveries where record_id = '{RECORD}'",
    f"delete from events where record_id = '{RECORD}'",
)


async def run_expiry(
    engine: Engine, rows: int, seed: int, *, young: int = 1_000, patience: float = 1_800.0
) -> dict[str, Any]:
    """Let so many finished deliveries with their attempts and events expire beside writes."""
    with tempfile.TemporaryDirectory(prefix="carteiro-expiry-") as name:
        folder = Path(name)
        async with empty_database(engine, folder) as url, recipients(OWNERS, seed=seed) as there:
            tenants = await settle_in(url, folder, there.ports, owners=OWNERS)
            owner, webhooks = next(iter(tenants.webhooks.items()))
            db = await database.open(url, clock=SystemClock(), ids=Ids())
            try:
                old = OldRows(db, owner, webhooks, seed)
                await old.add(rows, 40)
                await old.add(young, 40, finished=False)
                await old.add(young, 1)
            finally:
                await db.close()
            load = Load(tenants, seed)
            product = Product(folder, url, tenants.key_file)
            before = await _sizes(url)
            most = dict(before)
            began = time.monotonic()
            try:
                await product.start()
                async with load.writing(product.address, rate=RATE):
                    ended = 0
                    while not ended and time.monotonic() - began < patience:
                        await asyncio.sleep(LOOK_SECONDS)
                        ended = await _count(url, ENDED)
                        for what, size in (await _sizes(url)).items():
                            most[what] = max(most[what], size)
                    seconds = time.monotonic() - began
                left = await _count(url, FILLED) - 2 * young
                rss = product.rss()
                await until(lambda: _none_waits(url), 60)
                await product.stop()
            finally:
                await product.close()
            after = await _sizes(url)
            keys = read_key_file(tenants.key_file, Ids())
            chain = await walked(url, keys)
            kept = await query(
                url, f"select state, count(*) from deliveries where record_id = '{RECORD}'"
                " group by state order by state",
            )  # fmt: skip
            events = await _count(url, f"select count(*) from events where record_id = '{RECORD}'")
            for statement in FORGET:
                await _change(url, statement)
            verdict = judge(
                f"expiry of {rows} rows, {engine}", load, await read_rows(url), there.got, rss=rss
            )
    verdict.find(not ended, f"it did not end in {patience:.0f} s")
    verdict.find(left, "expired deliveries left")
    verdict.find(kept != [("delivered", young), ("ready", young)], f"kept rows: {kept}")
    verdict.find(events != 2 * young // PER_EVENT, f"kept events: {events}")
    verdict.find(len(chain.faults), f"chains broken: {chain.faults[:1]}")
    verdict.find(verdict.p99_ms > P99_MS, f"writes took {verdict.p99_ms} ms")
    verdict.find(len(load.refused) + len(load.broken), "writes refused")
    if engine == "sqlite":
        grown = most["file"] - before["file"]
        verdict.find(grown > MORE_MIB, f"the file grew by {grown:.0f} MiB")
        verdict.find(most["wal"] > WAL_MIB, f"the WAL had {most['wal']:.0f} MiB")
        verdict.find(
            after["file"] > before["file"] * LEFT_SHARE + FEW_MIB, "the file did not shrink"
        )
    verdict.figures |= {
        "expired": rows, "purge_seconds": round(seconds, 1),
        "rows_per_second": round(rows * (2 + 1 / PER_EVENT) / seconds),
        "file_mib": [round(before["file"]), round(most["file"]), round(after["file"])],
        "wal_mib": round(most["wal"], 1), "attempts_verified": chain.attempts,
    }  # fmt: skip
    return verdict.told()


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


async def _none_waits(url: str) -> bool:
    return await _count(url, WAITING) == 0


async def _change(url: str, statement: str) -> None:
    if url.startswith("sqlite"):
        await asyncio.to_thread(_change_file, url.removeprefix("sqlite:///"), statement)
        return
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def _change_file(path: str, statement: str) -> None:
    connection = sqlite3.connect(path)
    try:
        with connection:
            connection.execute(statement)
    finally:
        connection.close()


SEED = 17_260


@pytest.mark.timed
@pytest.mark.parametrize(
    ("engine", "rows"),
    [
        pytest.param("sqlite", 1_000_000, marks=LARGE),
        pytest.param("postgres", 200_000, marks=LARGE),
    ],
)
async def test_old_rows_expire_under_load(engine: Engine, rows: int) -> None:
    told = await run_expiry(engine, rows, SEED)
    assert told["pass"], told
