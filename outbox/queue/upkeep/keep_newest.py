"""Cancel all parked deliveries of a webhook but the newest of each record.

There is no index from a record to its deliveries: each write would pay for it, and few owners
choose this. So this process reads the waiting deliveries page by page and remembers the newest of
each record. When there are very many, it takes a share of the records at a time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from zlib import crc32

from outbox.database.sql import ITEMS, items
from outbox.database.transaction import Database, Row, Tx
from outbox.queue.state import head_deliveries, lanes

RECORDS = 100_000
"""Deliveries at a time, and so at most as many records to remember: about 40 MB."""
PAGE = 500

# Blocks a concurrent activation; no row when the webhook is active or deleted.
STILL_INACTIVE = """
select id from webhooks where id = $1 and state <> 'active' /*postgres for update*/
"""

COUNT = """
select (
    select count(*) from deliveries /*sqlite indexed by deliveries_ready*/
    where webhook_id = $1 and state = 'ready')
  + (
    select count(*) from deliveries /*sqlite indexed by deliveries_held*/
    where webhook_id = $1 and state = 'held') as waiting
"""

PAGE_OF_READY = f"""
select id, next_at, record_id, seq from deliveries /*sqlite indexed by deliveries_ready*/
where webhook_id = $1 and state = 'ready' and retry = $2
  and next_at >= $3 and (next_at > $3 or id > $4)
order by next_at, id limit {PAGE}
"""

PAGE_OF_HELD = f"""
select id, record_id, seq from deliveries /*sqlite indexed by deliveries_held*/
where webhook_id = $1 and state = 'held' and (record_id, seq) > ($2, $3)
order by record_id, seq limit {PAGE}
"""

# The newer one of each record must still wait, because retention may have ended it. The condition
# on the state matches no index, so that the statement starts from the ids.
END_OLDER = f"""
update deliveries set state = 'cancelled', reason = 'parked', finished_at = $2
where id /*sqlite in (*/ /*postgres = any (array(*/
  select older.id from {ITEMS}
  join deliveries older on older.id = value ->> 0
  join deliveries newer on newer.id = value ->> 1
  where older.state || '' in ('ready', 'held') and newer.state || '' in ('ready', 'held')
  /*sqlite )*/ /*postgres for update of older))*/
returning id, ordered
"""


async def end_older(db: Database, webhook_id: str) -> None:
    """Cancel all but the newest while the webhook is inactive, in small transactions."""
    shares = 1 + await db.read(_count, webhook_id) // RECORDS
    for share in range(shares):
        if not await _end_share(db, webhook_id, share, shares):
            return


def tell_cancelled(db: Database, webhook_id: str, count: int) -> None:
    """Report this many cancelled deliveries."""
    for _ in range(count):
        db.observer.delivery_finished(webhook_id, "cancelled", None)


async def _end_share(db: Database, webhook_id: str, share: int, shares: int) -> bool:
    """Cancel those of a share of the records; return False when the webhook is not inactive."""
    newest: dict[str, tuple[int, str]] = {}
    async for page in _pages(db, webhook_id):
        older: list[tuple[str, str]] = []
        for row in page:
            record = row["record_id"]
            if crc32(record.encode()) % shares != share:
                continue
            delivery = (int(row["seq"]), str(row["id"]))
            first, last = sorted((newest.get(record, delivery), delivery))
            newest[record] = last
            if first != last:
                older.append((first[1], last[1]))
        if not older:
            continue
        ended = await db.write(_end, webhook_id, older)
        if ended is None:
            return False
        tell_cancelled(db, webhook_id, ended)
    return True


async def _pages(db: Database, webhook_id: str) -> AsyncIterator[list[Row]]:
    """Yield what waits at a webhook: retries, first attempts and held deliveries."""
    for retry in (True, False):
        after = (0, "")
        while page := await db.read(_rows, PAGE_OF_READY, webhook_id, retry, *after):
            after = (int(page[-1]["next_at"]), str(page[-1]["id"]))
            yield page
    record, seq = "", 0
    while page := await db.read(_rows, PAGE_OF_HELD, webhook_id, record, seq):
        record, seq = str(page[-1]["record_id"]), int(page[-1]["seq"])
        yield page


async def _count(tx: Tx, webhook_id: str) -> int:
    row = await tx.one(COUNT, webhook_id)
    return 0 if row is None else int(row["waiting"])


async def _rows(tx: Tx, statement: str, *values: str | int) -> list[Row]:
    return await tx.all(statement, *values)


async def _end(tx: Tx, webhook_id: str, older: Sequence[tuple[str, str]]) -> int | None:
    """Cancel the older ones of these pairs; return how many, None when the webhook is active."""
    await lanes.lock(tx, [webhook_id])
    if await tx.one(STILL_INACTIVE, webhook_id) is None:
        return None
    ended = await tx.all(END_OLDER, items(older), tx.now)
    await head_deliveries.promote(tx, [row["id"] for row in ended if row["ordered"]])
    return len(ended)
