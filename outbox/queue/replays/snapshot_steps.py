"""Move a snapshot on: make an event for each record that is there, for one webhook alone.

The place and the events are committed together, so that each record is sent once, wherever a
process dies. A step reads the records in its own transaction and keeps them from being deleted
until it commits: an erasure finds the events of all that was read before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from outbox.database.transaction import Tx
from outbox.durations import SECOND
from outbox.events import RecordField, encode, enqueue, text_of
from outbox.queue.replays import job_steps
from outbox.queue.replays.job_steps import Step
from outbox.queue.replays.jobs import Job
from outbox.queue.state import lanes
from outbox.webhooks import conditions, subscription

MOST = 100
"""Records of one transaction."""
MOST_BYTES = 256 * 1024
"""Bytes of data of one transaction, besides its first record."""
WAITING = 500
"""Deliveries that wait at the webhook while a snapshot makes others."""
UNSEEN = 500
"""Events that wait for the fan-out of all owners meanwhile."""

_BEHIND = f"""
select (select count(*) from (select 1 from events where seq is null limit {UNSEEN}) as unseen)
    as unseen,
  (select count(*) from (select 1 from deliveries /*sqlite indexed by deliveries_ready*/
    where webhook_id = $1 and state = 'ready' limit {WAITING}) as ready)
  + (select count(*) from (select 1 from deliveries /*sqlite indexed by deliveries_held*/
    where webhook_id = $1 and state = 'held' limit {WAITING}) as held) as waiting
"""
_LOCK = """
select j.id from jobs j join lanes l on l.webhook_id = j.webhook_id
where j.id = $1 and j.state = 'running' and j.place = $2 and j.reached = $3 and l.active = true
/*postgres for update of j*/
"""
_WEBHOOK = "select events, conditions from webhooks where id = $1"
_ADVANCE = """
update jobs set place = $2, reached_at = $3, reached = $4, made = made + $5,
  refused = refused + $6, paced_at = $7,
  state = case when $8 then 'done' else state end,
  finished_at = case when $8 then cast($9 as bigint) end
where id = $1
"""


@dataclass(frozen=True, slots=True)
class Copy:
    """A record as it is: its id, version, time of creation, and the `data` of its event.

    `fields` are those that conditions may use beside `data`.
    """

    record_id: str
    version: int
    created_at: int
    data: Mapping[str, Any]
    fields: Mapping[str, RecordField]


class Source(Protocol):
    """Reads the records that snapshots send."""

    async def __call__(
        self, tx: Tx, owner_id: str, name: str, after: tuple[int, str], most: int
    ) -> Sequence[Copy]:
        """Return up to `most` records of the owner behind a place, for the event `name`.

        They are in the order of (created_at, id), and no other transaction deletes them before this
        one ends.
        """


async def behind(tx: Tx, job: Job, most: int = MOST) -> bool:
    """Return whether the job must wait: for its rate, its receiver, or the fan-out."""
    if not job_steps.allowance(job, tx.now, min(most, MOST)):
        return True
    row = await tx.one(_BEHIND, job.webhook_id)
    return row is not None and (row["waiting"] >= WAITING or row["unseen"] >= UNSEEN)


async def advance(tx: Tx, job: Job, source: Source, most: int = MOST) -> Step | None:
    """Make up to `most` next events; None when the job has moved, ended or been stopped."""
    # The lane first, because of the order of locks in outbox.queue.state.lanes.
    await lanes.lock(tx, [job.webhook_id])
    if await tx.one(_LOCK, job.id, job.place, job.reached) is None:
        return None
    names = job.names or ()
    name, most = names[job.place], job_steps.allowance(job, tx.now, min(most, MOST))
    if not most:
        # The wall clock was set back. Without this, no records would mean that none are left.
        return None
    webhook = await tx.one(_WEBHOOK, job.webhook_id)
    copies: Sequence[Copy] = ()
    # What the webhook no longer subscribes to is passed over.
    if webhook is not None and name in (subscription(webhook["events"]) or ()):
        copies = await source(tx, job.owner_id, name, (job.reached_at, job.reached), most)
    criteria = conditions.of(webhook) if webhook is not None else None
    enqueued = refused = size = 0
    place, reached_at, reached = job.place, job.reached_at, job.reached
    passed = 0
    for copy in copies:
        data = encode({"data": copy.data})
        size += len(data)
        if passed and size > MOST_BYTES:
            break
        passed += 1
        reached_at, reached = copy.created_at, copy.record_id
        facts = conditions.facts_of(data, text_of(copy.fields))
        if criteria is None or not conditions.hold(criteria, facts):
            refused += 1
            continue
        enqueued += 1
        enqueue(
            tx, owner_id=job.owner_id, name=name, record_id=copy.record_id,
            record_version=copy.version, data=copy.data, webhook_id=job.webhook_id,
            about_id=job.id, record_fields=copy.fields,
        )  # fmt: skip
    if not copies:
        place, reached_at, reached = place + 1, 0, ""
    done = place >= len(names)
    # Unused time of the rate is kept for a second.
    paced_at = max(job.paced_at + passed * SECOND // job.rate, tx.now - SECOND)
    await tx.run(
        _ADVANCE, job.id, place, reached_at, reached, enqueued, refused, min(paced_at, tx.now),
        done, tx.now,
    )  # fmt: skip
    return Step(enqueued, refused, done)
