"""Upgrades of a filled database: how long they take, and kills while they run."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import sys
import time
from asyncio.subprocess import DEVNULL
from pathlib import Path

from tests.support.engines import Engine, empty_database
from tests.support.faults import ENGINES
from tests.support.ledger import query
from tests.support.process import environment
from tests.system.upgrades.test_upgrades import KEY_FILE, kept, load, missing, run_script

ROWS, KILLS = 50_000, 20
OLDEST = "b7822d0"
SEED = 21
NUMBERS = {
    "sqlite": "with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows})",
    "postgres": "with n(i) as (select generate_series(1, {rows}))",
}
ID = {"sqlite": "printf('%024d', n.i)", "postgres": "lpad(cast(n.i as text), 24, '0')"}
COLUMNS = {
    "sqlite": "select name from pragma_table_info('{table}')",
    "postgres": "select column_name from information_schema.columns"
    " where table_name = '{table}' and is_identity = 'NO' order by ordinal_position",
}
TABLES = ("contacts", "events", "deliveries", "attempts")
IDS = {"contacts": "id", "events": "id", "deliveries": "id", "attempts": "delivery_id"}
NEW = {"id", "event_id", "record_id", "delivery_id"}
"""Columns that have an id of their own in each row."""


async def fill(url: str, engine: Engine, rows: int) -> None:
    """Add `rows` delivered events, each with a contact, a delivery and an attempt."""
    [(delivery, event, contact)] = await query(
        url,
        "select d.id, d.event_id, e.record_id from deliveries d"
        " join events e on e.id = d.event_id where d.state = 'delivered'",
    )
    firsts = dict(zip(TABLES, (contact, event, delivery, delivery), strict=True))
    for table in TABLES:
        names = [
            str(name) for (name,) in await query(url, COLUMNS[engine].format(table=table))
            if name != "pos"
        ]  # fmt: skip
        values = [
            ID[engine] if name in NEW else "1000 + n.i" if name == "seq" else f"old.{name}"
            for name in names
        ]
        await run_script(
            url,
            f"insert into {table} ({', '.join(names)})"
            f" {NUMBERS[engine].format(rows=rows)} select {', '.join(values)}"
            f" from {table} old, n where old.{IDS[table]} = '{firsts[table]}';",
        )
    await run_script(url, f"update outbox_state set seq = {2000 + rows}")


async def migrate(folder: Path, url: str, seconds: float | None = None) -> int:
    """Run `carteiro migrate`, killed after `seconds`; return its exit status."""
    key_file = folder / "test.key"
    shutil.copyfile(KEY_FILE, key_file)
    key_file.chmod(0o600)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", "migrate", cwd=folder, stdout=DEVNULL,
        env=environment(
            folder, CARTEIRO_DATABASE__URL=url, CARTEIRO_SECRETS__KEY_FILE=str(key_file)
        ),
        start_new_session=True,
    )  # fmt: skip
    try:
        async with asyncio.timeout(seconds):
            return await process.wait()
    except TimeoutError:
        os.killpg(process.pid, signal.SIGKILL)
        return await process.wait()


@ENGINES
async def test_an_upgrade_that_is_killed_twenty_times_is_continued(
    engine: Engine, tmp_path: Path
) -> None:
    """Each of four tables has very many rows; the kills come at random moments."""
    dice, killed = random.Random(SEED), 0
    async with empty_database(engine, tmp_path) as url:
        await load(OLDEST, engine, url)
        await fill(url, engine, ROWS)
        before = await kept(url)
        began = time.monotonic()
        assert await migrate(tmp_path, url) == 0
        whole = time.monotonic() - began
        assert await kept(url) == before
    (folder := tmp_path / "killed").mkdir()
    async with empty_database(engine, folder) as url:
        await load(OLDEST, engine, url)
        await fill(url, engine, ROWS)
        for _ in range(KILLS):
            killed += await migrate(folder, url, dice.uniform(0.1, 0.6) * whole) != 0
        left = await missing(url)
        assert await migrate(folder, url) == 0
        assert await kept(url) == before
        assert await missing(url) == []
    print(json.dumps({
        "upgrade": OLDEST, "engine": engine, "rows": ROWS, "seconds": round(whole, 2),
        "kills": killed, "left after them": len(left),
    }))  # fmt: skip
    assert killed
