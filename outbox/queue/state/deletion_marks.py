"""Store up to which event deliveries of a webhook were deleted: nobody knows which of them arrived.

An earlier event without a delivery may have had one that was deleted, so a backfill leaves it out.
The mark is a `seq`, so that no change of a clock or of the retention time moves it back.
"""

from __future__ import annotations

from collections.abc import Iterable

from outbox.database.sql import ITEMS, items
from outbox.database.transaction import Row, Tx

# Only for webhooks that still exist: their rows are deleted with them.
_NOTE = f"""
insert into forgotten (webhook_id, seq)
select w.id, s.seq from (
  select value ->> 0 as webhook, cast(value ->> 1 as bigint) as seq from {ITEMS}) as s
join webhooks w on w.id = s.webhook
where true order by w.id /*postgres for key share of w*/
on conflict (webhook_id) do update set seq = excluded.seq where forgotten.seq < excluded.seq
"""
_UPTO = "select seq from forgotten where webhook_id = $1"
_TIME = """
select occurred_at from events
where owner_id = $1 and webhook_id is null and seq is not null and seq <= $2
order by seq desc limit 1
"""


async def note(tx: Tx, deleted: Iterable[Row]) -> None:
    """Note the deletion of these deliveries; each has `webhook_id`, `seq` and `origin`."""
    last: dict[str, int] = {}
    for row in deleted:
        if row["origin"] != "test":
            last[row["webhook_id"]] = max(last.get(row["webhook_id"], 0), int(row["seq"]))
    if last:
        await tx.run(_NOTE, items(sorted(last.items())))


async def upto(tx: Tx, webhook_id: str) -> int:
    """Return the greatest `seq` whose delivery to the webhook was deleted; 0 without any.

    A transaction that also reads deliveries reads them first, so that this sees a deletion that is
    committed in between.
    """
    row = await tx.one(_UPTO, webhook_id)
    return 0 if row is None else int(row["seq"])


async def time_of(tx: Tx, owner_id: str, seq: int) -> int | None:
    """Return when the last event up to `seq` occurred, in microseconds UTC; None without any."""
    row = await tx.one(_TIME, owner_id, seq) if seq else None
    return None if row is None else int(row["occurred_at"])
