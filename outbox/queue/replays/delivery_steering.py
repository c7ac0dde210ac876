"""Steer waiting deliveries on behalf of a user: try them now, or cancel them."""

from collections.abc import Sequence

from outbox.database.sql import IDS, items
from outbox.database.transaction import Row, Tx
from outbox.errors import OutboxError
from outbox.queue.state import circuits, head_deliveries, lanes, owner_reports
from outbox.webhooks import Webhook

CANCELLED = "user"
"""The reason of a delivery that somebody cancelled."""

FIND = f"""
select d.id, d.webhook_id, d.state, l.active, d.next_at - due_now() as due_in
from deliveries d left join lanes l on l.webhook_id = d.webhook_id where d.id in {IDS}
order by d.id
"""

# Before all others in its range of the queue: behind a backlog, "now" could be tomorrow.
HASTEN = """
update deliveries set next_at = (
  select /*sqlite min*/ /*postgres least*/($2, coalesce(min(next_at), $2) - 1) from (
    select next_at from deliveries ahead /*sqlite indexed by deliveries_ready*/
    where ahead.webhook_id = deliveries.webhook_id and ahead.state = 'ready'
      and ahead.retry = deliveries.retry
    order by next_at limit 1) as first)
where id = $1
"""
# How many one transaction changes: those that are due first.
HASTENED = 500
HASTEN_RETRIES = f"""
update deliveries set next_at = (select due_now())
where id /*sqlite in (*/ /*postgres = any (array(*/
  select id from deliveries /*sqlite indexed by deliveries_ready*/
  where webhook_id = $1 and state = 'ready' and retry = true and next_at > (select due_now())
  order by next_at limit {HASTENED} /*sqlite )*/ /*postgres for update))*/
"""
RETRIES = """
select count(*) as waiting, min(next_at) - due_now() as due_in from (
  select next_at from deliveries /*sqlite indexed by deliveries_ready*/
  where webhook_id = $1 and state = 'ready' and retry = $2 order by next_at limit $3) as soonest
"""
END = f"""
update deliveries set state = 'cancelled', reason = '{CANCELLED}', finished_at = $2
where id in {IDS} returning id, ordered
"""


class NotWaiting(OutboxError):
    """This delivery does not wait, so it cannot be steered; the text explains the reason."""


async def try_now(tx: Tx, delivery_id: str) -> None:
    """Make a waiting delivery the next one of its webhook. Raise NotWaiting.

    It keeps its tries, and its next failure continues the schedule. It waits neither for an open
    circuit nor for a pause that the receiver asked for; the limits of the owner hold it.
    """
    row = await _locked(tx, delivery_id)
    if row["state"] == "held":
        raise NotWaiting("An earlier delivery of its record must end first.")
    if not row["active"]:
        raise NotWaiting("Activate the webhook first; until then its deliveries are parked.")
    due = await lanes.due_now(tx)
    await tx.run(HASTEN, delivery_id, due)
    await circuits.forget_used(tx, row["webhook_id"])
    await circuits.let_pass(tx, [(delivery_id, row["webhook_id"])], pauses=True)
    await lanes.wake(tx, [row["webhook_id"]], due)
    tx.wake = True


async def try_new_url(tx: Tx, before: Webhook) -> None:
    """Send what waits to the new URL of a webhook, which was `before`, at once.

    What waited behind an open circuit is due, and so are the next 500 retries; later ones keep
    their times. The caller has changed the webhook, with its lane locked.
    """
    if before.circuit != "closed" and before.state != "disabled":
        await owner_reports.tell(tx, [owner_reports.activated(before.id, before.owner_id)])
    await circuits.forget_passes(tx, before.id)
    await tx.run(HASTEN_RETRIES, before.id)
    await lanes.rest(tx, [before.id])
    await lanes.mark(tx)
    tx.wake = True


async def retries(tx: Tx, webhook_id: str, most: int) -> tuple[int, int]:
    """Return how many failed deliveries have a next attempt, up to `most`, and in how many µs."""
    row = await tx.one(RETRIES, webhook_id, True, most)
    if row is None or not row["waiting"]:
        return 0, 0
    return int(row["waiting"]), max(int(row["due_in"]), 0)


async def cancel(tx: Tx, delivery_ids: Sequence[str]) -> list[str]:
    """Cancel those of these deliveries that wait; return the webhook of each that is cancelled.

    One that is being sent is not cancelled: its receiver may have it already.
    """
    rows = await tx.all(FIND, items(sorted(set(delivery_ids))))
    await lanes.lock(tx, {row["webhook_id"] for row in rows})
    # With the lanes locked no claim takes one of them.
    waiting = [
        row
        for row in await tx.all(FIND, items([row["id"] for row in rows]))
        if row["state"] in ("ready", "held")
    ]
    if waiting:
        ended = await tx.all(END, items([row["id"] for row in waiting]), tx.now)
        if await head_deliveries.promote(tx, [row["id"] for row in ended if row["ordered"]]):
            tx.wake = True
        await lanes.rest(tx, {row["webhook_id"] for row in waiting})
    return [row["webhook_id"] for row in waiting]


async def _locked(tx: Tx, delivery_id: str) -> Row:
    """Return a waiting delivery, with its lane locked. Raise NotWaiting."""
    rows = await tx.all(FIND, items([delivery_id]))
    if rows:
        await lanes.lock(tx, [rows[0]["webhook_id"]])
        rows = await tx.all(FIND, items([delivery_id]))
    if not rows:
        raise NotWaiting("This delivery is no longer in the log.")
    [row] = rows
    if row["state"] == "in_flight":
        raise NotWaiting("This delivery is being sent right now.")
    if row["state"] not in ("ready", "held"):
        raise NotWaiting("This delivery has ended; replay it instead.")
    return row
