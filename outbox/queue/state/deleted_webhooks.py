"""Know webhooks that were deleted, and record what was in flight when they were.

A request in flight ends after its webhook: its result is recorded like any other, and what would
wait for another attempt ends as cancelled. The row of a deleted webhook is locked in place of its
lane, so that its chain of attempts goes on in order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from outbox.database.sql import IDS, ITEMS, items
from outbox.database.transaction import Row, Tx
from outbox.queue.state.chain import Head
from outbox.queue.state.claimed_deliveries import Result
from outbox.queue.state.policy import cancelled
from outbox.webhooks.deleted import DeletedWebhook

REASON = "webhook deleted"
"""The reason of a delivery that ended with its webhook."""
COLUMNS = "id, owner_id, url, description, deleted_at, cancelled"

_NOTE = """
insert into deleted_webhooks (id, owner_id, url, description, deleted_at, cancelled)
select id, owner_id, url, description, $2, $3 from webhooks where id = $1
"""
_SENDING = """
select count(*) as sending from deliveries /*sqlite indexed by deliveries_claimed*/
where state = 'in_flight' and webhook_id || '' = $1
"""
_LOCK = f"""
select id from deleted_webhooks where id in {IDS} order by id /*postgres for update*/
"""
_HEADS = f"""
select webhook_id, place || ' ' || digest as chain from chain_ends where webhook_id in {IDS}
"""
_GO_ON = f"""
insert into chain_ends (webhook_id, place, digest, owner_id, attempted_at)
select d.id, cast(value ->> 1 as bigint), value ->> 2, d.owner_id, $2
from {ITEMS} join deleted_webhooks d on d.id = value ->> 0 where true
on conflict (webhook_id) do update set place = excluded.place, digest = excluded.digest,
  attempted_at = excluded.attempted_at
"""
# What was taken back from a sender keeps the reason for that.
_END = f"""
update deliveries set state = 'cancelled', finished_at = $2,
  reason = case when rescues > 0 and reason is not null then reason || '; {REASON}'
    else '{REASON}' end
where id in {IDS} and state || '' = 'ready'
  and not exists (select 1 from lanes l where l.webhook_id = deliveries.webhook_id)
returning id, webhook_id
"""
# By the index of what is ready: their log may have a month of deliveries.
_END_ALL = f"""
update deliveries set state = 'cancelled', finished_at = $1, reason = '{REASON}'
where state = 'ready' and webhook_id in (select id from deleted_webhooks)
returning id, webhook_id
"""
_COUNT = f"""
update deleted_webhooks set cancelled = cancelled + s.n
from (select value ->> 0 as webhook, cast(value ->> 1 as bigint) as n from {ITEMS}) as s
where deleted_webhooks.id = s.webhook
"""
_OF_OWNER = f"""
select {COLUMNS} from deleted_webhooks where owner_id = $1
order by deleted_at desc, id desc limit $2
"""
_ONE = f"select {COLUMNS} from deleted_webhooks where id = $1"
_OF_LOG = """
select owner_id from deliveries /*sqlite indexed by deliveries_log*/
where webhook_id = $1 order by id desc limit 1
"""
_FORGET = """
delete from deleted_webhooks where id in (
  select d.id from deleted_webhooks d where d.deleted_at < $1 and not exists (
    select 1 from deliveries l where l.webhook_id = d.id)
  limit $2)
"""


async def note(tx: Tx, webhook_id: str, ended: int) -> None:
    """Store that a webhook is deleted in this transaction, and how many deliveries end with it."""
    await tx.run(_NOTE, webhook_id, tx.now, ended)


async def sending(tx: Tx, webhook_id: str) -> int:
    """Return how many requests of a webhook are in flight."""
    row = await tx.one(_SENDING, webhook_id)
    return 0 if row is None else int(row["sending"])


async def listed(tx: Tx, owner_id: str, most: int) -> list[DeletedWebhook]:
    """Return up to `most` deleted webhooks of an owner, the last one first."""
    return [_deleted(row) for row in await tx.all(_OF_OWNER, owner_id, most)]


async def one(tx: Tx, webhook_id: str) -> DeletedWebhook | None:
    """Return a deleted webhook of any owner while the log has something of it.

    The caller knows that there is no webhook with this id.
    """
    row = await tx.one(_ONE, webhook_id)
    if row is not None:
        return _deleted(row)
    row = await tx.one(_OF_LOG, webhook_id)
    return None if row is None else DeletedWebhook(webhook_id, row["owner_id"])


async def end_left(tx: Tx, delivery_ids: Iterable[str]) -> dict[str, str]:
    """Cancel those of these deliveries that wait at a deleted webhook; return each's webhook."""
    ids = sorted(set(delivery_ids))
    rows = await tx.all(_END, items(ids), tx.now) if ids else []
    return await _counted(tx, rows)


async def end_all_left(tx: Tx) -> None:
    """Cancel all deliveries that wait at a deleted webhook, after those in flight were taken."""
    await _counted(tx, await tx.all(_END_ALL, tx.now))


async def _counted(tx: Tx, ended: Sequence[Row]) -> dict[str, str]:
    over: dict[str, str] = {row["id"]: row["webhook_id"] for row in ended}
    if over:
        await tx.run(_COUNT, items(sorted(Counter(over.values()).items())))
    return over


async def chains(tx: Tx, webhook_ids: Iterable[str]) -> Mapping[str, str | None]:
    """Return where the chains of deleted webhooks end, and lock them."""
    ids = items(sorted(set(webhook_ids)))
    await tx.all(_LOCK, ids)
    return {row["webhook_id"]: row["chain"] for row in await tx.all(_HEADS, ids)}


async def ended(tx: Tx, results: Sequence[Result]) -> dict[str, Result]:
    """End what was recorded for deleted webhooks and would wait; return the results as they are."""
    over = await end_left(tx, [one.delivery.id for one in results])
    return {
        one.delivery.id: replace(one, decision=cancelled(REASON))
        if one.delivery.id in over
        else one
        for one in results
    }


async def go_on(tx: Tx, heads: Mapping[str, Head]) -> None:
    """Store where the chains of deleted webhooks end now."""
    if heads:
        ends = [(webhook_id, *head) for webhook_id, head in sorted(heads.items())]
        await tx.run(_GO_ON, items(ends), tx.now)


async def forget(tx: Tx, before: int, most: int) -> int:
    """Delete up to `most` rows from before this moment without deliveries; return how many."""
    return await tx.run(_FORGET, before, most)


def _deleted(row: Row) -> DeletedWebhook:
    return DeletedWebhook(
        row["id"], row["owner_id"], row["url"], row["description"], int(row["deleted_at"]),
        int(row["cancelled"]),
    )  # fmt: skip
