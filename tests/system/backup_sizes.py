"""How long a large installation takes to back up, and to restore on each engine (R25)."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.support.databases import SqliteFiles
from tests.support.engines import Engine, empty_database
from tests.support.ledger import Verdict, query
from tests.system.backups import carteiro

BYTES_EACH = 2_600
"""Size of a record with its event, delivery and attempt, with their indexes."""
SECONDS_PER_GIB = 60.0
LOOPS = 5_000_000
ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")

_NUMBERS = "with recursive c (n) as (select 1 union all select n + 1 from c where n < {count})"
_ID = "printf('%012x', 1700000000000 + c.n) || substr(lower(hex(randomblob(6))), 1, 12)"
_CONTENT = (
    """
insert into contacts (id, owner_id, version, created_at, name, email, tags, source, folded,
  sort_name, notes)
{numbers} select {id}, printf('%024d', c.n % 50), 1, c.n, 'Maria ' || c.n, c.n || '@example.com',
  '[]', 'api', 'maria ' || c.n, 'maria ' || c.n, hex(randomblob(100)) from c
""",
    """
insert into events (id, seq, owner_id, name, record_id, record_version, occurred_at, request_id,
  body, body_digest)
select id, rowid, owner_id, 'contact.created', id, 1, created_at, id,
  cast('{{"event":"contact.created","data":{{"name":"' || name || '","email":"' || email ||
    '","notes":"' || notes || '"}}}}' as blob), lower(hex(randomblob(32))) from contacts
""",
    """
insert into deliveries (id, owner_id, event_id, webhook_id, origin, state, retry, next_at, tries,
  attempts, record_id, seq, created_at, finished_at)
select id, owner_id, id, printf('%024d', seq % 100), 'event',
  case when seq % 20 then 'delivered' else 'ready' end, false, 1, 1, 1, record_id, seq, 1, 1
from events order by id
""",
    """
insert into attempts (owner_id, delivery_id, webhook_id, event_id, number, kind, outcome, status,
  started_at, total_us, address, url, request_headers, response_headers, response_body, truncated,
  node_id)
select owner_id, id, webhook_id, event_id, 1, 'event', 'delivered', 200, 1, 1, '203.0.113.7',
  'https://example.com/hook', '[["Content-Type","application/json"],["X-Webhook-Id","' || id ||
    '"],["X-Webhook-Signature","sha256=' || hex(randomblob(32)) || '"]]',
  '[["Server","nginx"]]', cast(hex(randomblob(100)) as blob), false, 'node' from deliveries
""",
)


async def run_size(mib: int) -> dict[str, Any]:
    """Back up an SQLite file of about `mib`, and restore it on both engines."""
    verdict = Verdict(f"backup of {mib} MiB", 0)
    with tempfile.TemporaryDirectory(prefix="carteiro-size-") as home:
        folder = Path(home)
        url = await SqliteFiles().fresh(folder)
        file = Path(url.removeprefix("sqlite:///"))
        count = mib * 2**20 // BYTES_EACH
        await asyncio.to_thread(_make, file, count)
        size = file.stat().st_size / 2**30
        made = await carteiro("backup", "b", url=url, folder=folder)
        verdict.find(made.status != 0, f"backup: {made.err}")
        verdict.figures |= {
            "database_mib": round(size * 1024),
            "backup_mib": round((folder / "b").stat().st_size / 2**20),
            "backup_s": made.seconds,
            "rows": 4 * count,
        }
        for engine in ENGINES:
            (folder / engine).mkdir()
            async with empty_database(engine, folder / engine) as target:
                cpu, busy = _cpu(), _busy()
                restored = await carteiro("restore", "b", url=target, folder=folder)
                verdict.find(restored.status != 0, f"restore: {restored.err}")
                [(found,)] = await query(target, "select count(*) from attempts")
                verdict.find(found != count, f"{found} attempts instead of {count}")
            busy = max(busy, _busy())
            slow = restored.seconds > SECONDS_PER_GIB * size * busy
            verdict.find(slow, f"restore on {engine} took {restored.seconds} s")
            verdict.figures[f"restore_{engine}_beside_others"] = round(busy, 1)
            verdict.figures[f"restore_{engine}_s"] = restored.seconds
            verdict.figures[f"restore_{engine}_cpu_s"] = round(_cpu() - cpu, 1)
    return verdict.told()


def _make(file: Path, count: int) -> None:
    db = sqlite3.connect(file, isolation_level=None)
    try:
        db.execute("pragma synchronous = off")
        db.execute("begin")
        for text in _CONTENT:
            db.execute(text.format(numbers=_NUMBERS.format(count=count), id=_ID))
        db.execute("commit")
    finally:
        db.close()


def _busy() -> float:
    """Return how many times longer than its CPU time a task takes here now; 1 without others."""
    began, cpu = time.monotonic(), time.process_time()
    sum(range(LOOPS))
    return max(1.0, (time.monotonic() - began) / (time.process_time() - cpu))


def _cpu() -> float:
    """Return the CPU seconds of all ended children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
