"""The drain's statements stay quick while its tables grow from nothing, before any statistics."""

from __future__ import annotations

from typing import Any

import pytest

from outbox.database.sql import items
from outbox.database.transaction import Database, Tx
from outbox.queue import claim, fanout, loading, settle
from tests.support.drain import OWNER, add_webhook, ring

ROWS = 5_000
TIMES = 10
"""After five executions of a prepared statement PostgreSQL keeps one plan for all values."""
IDS = [f"{n:024x}" for n in range(1, 6)]
SETTLED = [[one, "c", "delivered", None, 0, 1, 1, "success", 200, 0] for one in IDS]
READ = """
select cast(sum(seq_tup_read) as bigint) as n from pg_stat_xact_user_tables
where relname in ('events', 'deliveries')
"""


async def _read(tx: Tx, statement: str, args: tuple[Any, ...]) -> int:
    """Run `statement`; return how many rows it read without an index."""
    await tx.all(statement, *args)
    found = await tx.one(READ)
    assert found is not None
    return int(found["n"])


async def _grow(tx: Tx) -> None:
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


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_a_plan_for_empty_tables_reads_few_rows_of_full_ones(db: Database) -> None:
    webhook_id, _ = await add_webhook(db, ring(), "http://127.0.0.1:9/")
    statements: dict[str, tuple[str, tuple[Any, ...]]] = {
        "claim": (claim.CLAIM, ("c", "n", webhook_id, 5, 1)),
        "load": (loading.LOAD, (items(IDS),)),
        "settle": (settle.SETTLE, (items(SETTLED),)),
        "give_seq": (fanout.GIVE_SEQ, (items([[n, n] for n in range(1, 6)]),)),
    }
    drain = db.apart("drain")
    for _ in range(TIMES):
        for statement, args in statements.values():
            for each in (drain, db):
                await each.write(_read, statement, args)
    await db.write(_grow)
    read = {name: await drain.write(_read, *wanted) for name, wanted in statements.items()}
    assert set(read.values()) == {0}, read
    # Without the settings of the drain's connections each of them reads a whole table.
    others = {name: await db.write(_read, *wanted) for name, wanted in statements.items()}
    assert min(others.values()) >= ROWS, others
