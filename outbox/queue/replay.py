"""Replay: a new delivery of an event that was sent before, in its user's name."""

from outbox.database.transaction import Tx
from outbox.errors import OutboxError
from outbox.queue import lanes

ORIGINAL = """
select d.id, d.owner_id, d.event_id, d.webhook_id, d.record_id, d.seq, d.origin, d.state,
  e.id as kept, e.erased_at, w.id as webhook
from deliveries d
left join events e on e.id = d.event_id
left join webhooks w on w.id = d.webhook_id
where d.id = $1
"""

# Until our commit no purge takes the event; one that came first has removed it by now.
KEEP_EVENT = "select id from events where id = $1 /*postgres for key share*/"

INSERT = """
insert into deliveries
  (id, owner_id, event_id, webhook_id, origin, state, retry, next_at, tries, attempts, record_id,
   seq, created_at, replayed_by)
values ($1, $2, $3, $4, 'replay', 'ready', false, $5, 0, 0, $6, $7, $8, $9)
"""


class NotReplayable(OutboxError):
    """This delivery cannot be sent again; the text says why."""


async def one(tx: Tx, delivery_id: str, user_id: str) -> str:
    """Send the event of a delivery once more to its webhook; returns the new delivery's id.

    The receiver gets the same event id and the same bytes. At a webhook that is not active the
    new delivery is parked like any other. Raises NotReplayable.
    """
    row = await tx.one(ORIGINAL, delivery_id)
    if row is None:
        raise NotReplayable("This delivery is no longer in the log.")
    if row["webhook"] is None:
        raise NotReplayable("Its webhook was deleted, so there is nowhere to send it.")
    if row["kept"] is None:
        raise NotReplayable("Its event is past the retention time and was removed.")
    if row["erased_at"] is not None:
        raise NotReplayable("Its person was erased, and the event's body with them.")
    if row["origin"] == "test":
        raise NotReplayable("This was a test event; send a new test instead.")
    # From here a removal waits for us; one that came first has taken the lane.
    if not await lanes.lock(tx, [row["webhook_id"]]):
        raise NotReplayable("Its webhook was deleted, so there is nowhere to send it.")
    if await tx.one(KEEP_EVENT, row["event_id"]) is None:
        raise NotReplayable("Its event is past the retention time and was removed.")
    replayed = tx.new_id()
    due = await lanes.due_now(tx)
    await tx.run(
        INSERT,
        replayed, row["owner_id"], row["event_id"], row["webhook_id"], due,
        row["record_id"], row["seq"], tx.now, user_id,
    )  # fmt: skip
    await lanes.wake(tx, [row["webhook_id"]], due)
    tx.wake = True
    return replayed
