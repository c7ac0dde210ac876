"""Promote heads: of each record of an ordered webhook only the first unfinished delivery is sent.

The others are `held`. A transaction that makes a held delivery or that ends a head calls `promote`
with the lane of the webhook locked, so that every line with a held delivery has a head at each
commit, or a note in `wakes`. Fan-out, which must not wait for a lane, only makes held deliveries.
Replays and test events stand outside the lines.
"""

from __future__ import annotations

from collections.abc import Iterable

from outbox.database.sql import IDS, items
from outbox.database.transaction import Tx

# One text for all searches for a head: both engines use the partial index only for this text.
HEAD = """(
    select x.id from deliveries x /*sqlite indexed by deliveries_heads*/
    where x.webhook_id = {webhook} and x.record_id = {record}
      and x.ordered and x.state in ('ready', 'in_flight') limit 1)"""

# While deliveries join lines, an earlier one of the same record may not have joined yet.
MAY_LEAD = "(not l.turning or l.joined)"

# Its wait begins now, so that the time behind its head does not count as a delay of the drain. A
# delivery that joined a line between two attempts keeps the time of the next one.
PROMOTE = f"""
update deliveries set state = 'ready',
  next_at = /*sqlite max*/ /*postgres greatest*/(next_at, (select due_now()))
where id /*sqlite in (*/ /*postgres = any (array(*/
  select (
    select h.id from deliveries h /*sqlite indexed by deliveries_held*/
    where h.webhook_id = d.webhook_id and h.record_id = d.record_id and h.state = 'held'
    order by h.seq limit 1)
  from deliveries d join lanes l on l.webhook_id = d.webhook_id
  where d.id in {IDS} and {MAY_LEAD}
    and {HEAD.format(webhook="d.webhook_id", record="d.record_id")} is null
  /*sqlite )*/ /*postgres ))*/
returning webhook_id
"""


async def promote(tx: Tx, delivery_ids: Iterable[str]) -> list[str]:
    """Make the first held delivery of each record of these deliveries its head, if it has none.

    Return the webhooks with a new head; the caller has locked their lanes, and sets their times.
    """
    ids = sorted(set(delivery_ids))
    if not ids:
        return []
    return [row["webhook_id"] for row in await tx.all(PROMOTE, items(ids))]
