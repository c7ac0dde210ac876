"""Insert many rows straight into the outbox tables, for tests."""

from __future__ import annotations

from outbox.database.transaction import Tx

WEBHOOKS = """
insert into webhooks (id, owner_id, version, url, events, state, ordered, secret, since_pos,
  created_at, updated_at)
with recursive number(n) as (
  select cast($1 as bigint) union all select n + 1 from number where n < $2)
select 'w' || substr('000000' || n, /*sqlite -6*/ /*postgres length('' || n) + 1*/), 'owner', 1,
  'https://example.com/' || n, '[]', 'active', false, /*sqlite x'00'*/ /*postgres '\\x00'*/, 0, 1, 1
from number
"""
LANES = """
insert into lanes (webhook_id, owner_id, active, failing, due_at)
select id, owner_id, true, false, 0 from webhooks where id not in (select webhook_id from lanes)
"""

DELIVERIES = """
insert into deliveries (id, owner_id, event_id, webhook_id, origin, state, retry, next_at, tries,
  attempts, record_id, seq, created_at)
with recursive number(n) as (
  select cast(0 as bigint) union all select n + 1 from number where n < $2 - 1)
select /*sqlite lower(hex(randomblob(12)))*/ /*postgres substr(md5(random()::text), 1, 24)*/,
  'owner', 'event', $1, 'replay', 'ready', $3, cast($4 as bigint) + n * cast($5 as bigint), 0, 0,
  'record', 0, 1 from number
"""


def webhook_id(number: int) -> str:
    return f"w{number:06}"


async def add_webhooks(tx: Tx, first: int, last: int) -> None:
    """Insert active webhooks with these numbers, and their lanes."""
    await tx.run(WEBHOOKS, first, last)
    await tx.run(LANES)


async def add_waiting(
    tx: Tx, number: int, count: int, next_at: int, step: int = 1, retry: bool = False
) -> None:
    """Insert ready deliveries of a webhook, due `step` microseconds apart from `next_at` on."""
    await tx.run(DELIVERIES, webhook_id(number), count, retry, next_at, step)


async def pause(tx: Tx, number: int) -> None:
    """Set a webhook to the state after a pause."""
    await tx.run("update webhooks set state = 'paused' where id = $1", webhook_id(number))
    await tx.run("update lanes set active = false where webhook_id = $1", webhook_id(number))
