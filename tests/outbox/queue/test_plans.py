"""The drain's statements stay quick while its tables grow from nothing, before any statistics."""

from __future__ import annotations

from typing import Any

import pytest

from outbox.database.sql import items
from outbox.database.transaction import Database, Tx
from outbox.queue.drain import claim, fanout, loading, owners, settle, subscribers
from outbox.queue.state import lanes
from tests.support.drain import OWNER, add_webhook, ring

ROWS = 5_000
FEW = 100
"""Rows that a statement may read to find five."""
TIMES = 10
"""After five executions of a prepared statement PostgreSQL keeps one plan for all values."""
TABLES = ("events", "deliveries", "webhooks", "lanes")
IDS = [f"{n:024x}" for n in range(1, 6)]
SETTLED = [[one, "c", "delivered", None, 0, 1, 1, "success", 200, 0] for one in IDS]
READ = """
select cast(sum(seq_tup_read) as bigint) as whole,
  cast(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) as bigint) as n
from pg_stat_xact_user_tables where relname = any ($1)
"""
COLUMNS = """
select string_agg(column_name, ', ') as all from information_schema.columns
where table_name = $1 and column_name not in ('id', 'webhook_id', 'owner_id')
"""


async def _read(tx: Tx, statement: str, args: tuple[Any, ...]) -> tuple[int, int]:
    """Run `statement`; return how many rows it read, those without an index first."""
    before = await tx.one(READ, TABLES)
    await tx.all(statement, *args)
    after = await tx.one(READ, TABLES)
    assert before is not None
    assert after is not None
    return int(after["whole"]) - int(before["whole"]), int(after["n"]) - int(before["n"])


async def _grow(tx: Tx) -> None:
    """Add rows, and as many webhooks of other owners."""
    await tx.run(
        "insert into events (id, seq, owner_id, name, record_id, record_version, occurred_at,"
        " body_digest) select lpad(to_hex(n), 24, '0'), n, $1, 'thing.made', 'r', 1, n, ''"
        " from generate_series(1, $2::int) as n",
        OWNER, ROWS,
    )  # fmt: skip
    await tx.run(
        "insert into deliveries (id, owner_id, event_id, webhook_id, origin, state, retry, next_at,"
        " tries, attempts, record_id, seq, created_at) select e.id, e.owner_id, e.id, w.id,"
        " 'event', 'exhausted', true, 0, 1, 1, 'r', e.seq, 1 from events e, webhooks w"
    )
    for table, key in (("webhooks", "id"), ("lanes", "webhook_id")):
        row = await tx.one(COLUMNS, table)
        assert row is not None
        await tx.run(
            f"insert into {table} ({key}, owner_id, {row['all']})"
            f" select lpad(to_hex(n), 24, '0'), 'o' || n, {row['all']}"
            f" from {table}, generate_series(1, $1::int) as n",
            ROWS,
        )
    await tx.run("update lanes set due_at = 1")


async def _stop_statistics(tx: Tx) -> None:
    for table in TABLES:
        await tx.run(f"alter table {table} set (autovacuum_enabled = off)")


async def _collect_statistics(tx: Tx) -> None:
    for table in TABLES:
        await tx.run(f"analyze {table}")


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_a_plan_for_empty_tables_reads_few_rows_of_full_ones(db: Database) -> None:
    webhook_id, _ = await add_webhook(db, ring(), "http://127.0.0.1:9/")
    await db.write(_stop_statistics)
    statements: dict[str, tuple[str, tuple[Any, ...]]] = {
        "due": (claim.DUE_LANES, (5, 5)),
        "walk": (owners.STEPS, (False, "o1", 5)),
        "of_owners": (owners.OF_OWNERS, (items(["o1", "o2", "o3"]), False, 5)),
        "claim": (claim.CLAIM, ("c", "n", webhook_id, 5, 1)),
        "in_flight": (lanes.IN_FLIGHT, (items([webhook_id]),)),
        "load": (loading.LOAD, (items(IDS),)),
        "settle": (settle.SETTLE, (items(SETTLED),)),
        "next_seq": (fanout.NEXT_SEQ, (1_000_000, items([[n, n] for n in range(1, 6)]))),
        "lock": (lanes.TRY, (items(IDS),)),
        "webhooks": (subscribers.OF_OWNERS, (items(["o1", "o2"]), 5)),
        "turn": (subscribers.PAGE, ("o1", 0, "", 5)),
        "left": (fanout.LEFT, (OWNER, 1, 5)),
    }
    drain = db.apart("drain")
    for _ in range(TIMES):
        for statement, args in statements.values():
            for each in (drain, db):
                await each.write(_read, statement, args)
    await db.write(_grow)
    read = {name: await drain.write(_read, *query) for name, query in statements.items()}
    assert max(read.values()) <= (0, FEW), read
    assert max(rows for _, rows in read.values()) <= FEW, read
    # Without the settings of the drain's connections most of them read whole tables.
    others = {name: await db.write(_read, *query) for name, query in statements.items()}
    assert sum(whole >= ROWS for whole, _ in others.values()) >= 4, others
    await db.write(_collect_statistics)
    read = {name: await drain.write(_read, *query) for name, query in statements.items()}
    assert max(rows for _, rows in read.values()) <= FEW, read
