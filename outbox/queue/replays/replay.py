"""Replay a delivery: create a new delivery of its event on behalf of a user."""

from outbox.database.transaction import Tx
from outbox.errors import OutboxError
from outbox.queue.state import circuits, lanes
from outbox.states import ERASED

ORIGINAL = """
select d.id, d.owner_id, d.event_id, d.webhook_id, d.record_id, d.seq, d.origin, d.state,
  coalesce(d.sequence, d.repeats) as sequence,
  e.id as kept, e.erased_at, w.id as webhook
from deliveries d
left join events e on e.id = d.event_id
left join webhooks w on w.id = d.webhook_id
where d.id = $1
"""

# Locked against a purge until this commit; no row when the event was purged before.
KEEP_EVENT = "select id, erased_at from events where id = $1 /*postgres for key share*/"
REFUSED = f"The body of this event was {ERASED}."

INSERT = """
insert into deliveries
  (id, owner_id, event_id, webhook_id, origin, state, retry, next_at, tries, attempts, record_id,
   seq, created_at, replayed_by, nth, repeats)
values ($1, $2, $3, $4, 'replay', 'ready', false, $5, 0, 0, $6, $7, $8, $9, $10, $11)
"""

# Two probes, because each of the two indexes has a part of the deliveries.
LAST = """
select max(nth) as nth from (
  select nth from deliveries /*sqlite indexed by deliveries_once*/
  where event_id = $1 and webhook_id = $2 and origin = 'event'
  union all
  select nth from deliveries /*sqlite indexed by deliveries_again*/
  where event_id = $1 and webhook_id = $2 and origin <> 'event') as others
"""


class NotReplayable(OutboxError):
    """This delivery cannot be sent again; the text explains the reason."""


async def one(tx: Tx, delivery_id: str, user_id: str) -> str:
    """Send the event of a delivery to its webhook again; return the new delivery's id.

    The receiver gets the same event id and the same bytes. At a webhook that is not active, the new
    delivery is parked. Raise NotReplayable.
    """
    row = await tx.one(ORIGINAL, delivery_id)
    if row is None:
        raise NotReplayable("This delivery is no longer in the log.")
    if row["webhook"] is None:
        raise NotReplayable("The webhook of this delivery was deleted.")
    if row["kept"] is None:
        raise NotReplayable("The event is past the retention time and was deleted.")
    if row["erased_at"] is not None:
        raise NotReplayable(REFUSED)
    if row["origin"] == "test":
        raise NotReplayable("A test event cannot be replayed; send a new test instead.")
    # A removal waits for this lock; one that was committed before has deleted the lane.
    if not await lanes.lock(tx, [row["webhook_id"]]):
        raise NotReplayable("The webhook of this delivery was deleted.")
    event = await tx.one(KEEP_EVENT, row["event_id"])
    if event is None:
        raise NotReplayable("The event is past the retention time and was deleted.")
    if event["erased_at"] is not None:
        raise NotReplayable(REFUSED)
    last = await tx.one(LAST, row["event_id"], row["webhook_id"])
    nth = 1 + int(last["nth"] or 0) if last is not None else 1
    replayed = tx.new_id()
    due = await lanes.due_now(tx)
    await tx.run(
        INSERT,
        replayed, row["owner_id"], row["event_id"], row["webhook_id"], due,
        row["record_id"], row["seq"], tx.now, user_id, nth, row["sequence"],
    )  # fmt: skip
    await circuits.let_pass(tx, [(replayed, row["webhook_id"])])
    await lanes.wake(tx, [row["webhook_id"]], due)
    tx.wake = True
    return replayed
