"""Move a job on: find its next events, and replay them in a transaction that also moves its place.

Place and replays are committed together, so that each event is replayed once, wherever a process
dies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from outbox.database import sql
from outbox.database.index_plans import by_index
from outbox.database.sql import AMONG_IDS, items
from outbox.database.transaction import Tx
from outbox.durations import SECOND
from outbox.queue.replays import job_selection
from outbox.queue.replays.job_selection import EventPage
from outbox.queue.replays.jobs import Job
from outbox.queue.state import deletion_marks, lanes, sequences

MOST = {"sqlite": 200, "postgres": 500}
"""Replays of one transaction; on SQLite other writes wait for it."""
PAGES = 10
"""Pages of events that a step reads at most to find its replays."""

# Locked against a purge until the commit; events that were purged before are not among them.
_KEEP = f"""
select id, owner_id, record_id, seq, erased_at from events where id {AMONG_IDS}
/*postgres for key share*/
"""
_COLUMNS = (
    "id", "owner_id", "event_id", "webhook_id", "origin", "state", "retry", "next_at", "tries",
    "attempts", "record_id", "seq", "created_at", "replayed_by", "nth",
    "sequence", "repeats",
)  # fmt: skip
_LOCK = """
select j.id from jobs j join lanes l on l.webhook_id = j.webhook_id
where j.id = $1 and j.state = 'running' and j.place = $2 and l.active = true
/*postgres for update of j*/
"""
_ADVANCE = """
update jobs set place = $2, made = made + $3, refused = refused + $4, paced_at = $5,
  state = case when $6 then 'done' else state end,
  finished_at = case when $6 then cast($7 as bigint) end
where id = $1
"""


@dataclass(frozen=True, slots=True)
class Step:
    """What a step did; `done` means that the job has ended."""

    made: int
    refused: int
    done: bool


def allowance(job: Job, now: int, most: int) -> int:
    """Return how many replays the rate allows now: those of the last second at most.

    None before it allows those of a tenth of a second or `most`, as each step has its price. A job
    whose last step is in the future goes on: the wall clock was set back.
    """
    passed = now - job.paced_at
    if passed < -SECOND:
        passed = SECOND
    allowed = min(min(max(passed, 0), SECOND) * job.rate // SECOND, most)
    return allowed if allowed >= min(most, job.rate // 10) else 0


async def find(tx: Tx, job: Job, most: int = MOST["postgres"]) -> EventPage | None:
    """Return the next events of a job, up to `most`; None while the fan-out allows none."""
    selection, place, erased = await job_selection.within(tx, job.selection), job.place, 0
    for number in range(PAGES):
        # What a page has besides the chosen events is read again by the next step.
        page = await job_selection.look(tx, selection, place, most, job_selection.FIRST << number)
        place, erased = page.place, erased + page.erased
        if page.events or not page.more:
            break
    if page.more and place == job.place and not erased:
        return None
    return replace(page, erased=erased)


async def advance(tx: Tx, job: Job, page: EventPage) -> Step | None:
    """Replay the events of a page; None when the job has moved, ended or been stopped meanwhile."""
    # The lane first, because of the order of locks in outbox.queue.state.lanes. Two runs of the job
    # wait for each other here, and so do two jobs of a webhook: the second sees the replays of the
    # first.
    await lanes.lock(tx, [job.webhook_id])
    if await tx.one(_LOCK, job.id, job.place) is None:
        return None
    replays, refused = await replay(tx, job, page.events)
    refused += page.erased
    # Unused time of the rate is kept for a second.
    paced_at = max(job.paced_at + replays * SECOND // job.rate, tx.now - SECOND)
    await tx.run(
        _ADVANCE, job.id, page.place, replays, refused, min(paced_at, tx.now), not page.more, tx.now
    )
    return Step(replays, refused, not page.more)


async def replay(tx: Tx, job: Job, events: Sequence[str]) -> tuple[int, int]:
    """Make a delivery of each event that still fits; return how many, and how many not."""
    if not events:
        return 0, 0
    await by_index(tx)
    fitting = await job_selection.undelivered(tx, job.selection, events)
    rows = await tx.all(_KEEP, items(sorted(fitting))) if fitting else []
    # Read after the deliveries, so that a deletion in between is seen.
    upto = 0 if job.ends else await deletion_marks.upto(tx, job.webhook_id)
    sendable = sorted(
        (row for row in rows if row["erased_at"] is None and row["seq"] > upto),
        key=lambda row: int(row["seq"]),
    )
    if sendable:
        due = await lanes.due_now(tx)
        # What a backfill sends repeats nothing, so it has numbers of its own.
        first = None if job.ends else await sequences.take(tx, job.webhook_id, len(sendable))
        # One microsecond apart, so that the lane sends in the order of the events.
        await sql.insert(
            tx, "deliveries", _COLUMNS,
            [
                (
                    tx.new_id(), row["owner_id"], row["id"], job.webhook_id, "replay", "ready",
                    False, due + number, 0, 0, row["record_id"], row["seq"], tx.now, job.user_id,
                    max(fitting[row["id"]].nth, 1),
                    None if first is None else first + number, fitting[row["id"]].repeats,
                )
                for number, row in enumerate(sendable)
            ],
        )  # fmt: skip
        await lanes.wake(tx, [job.webhook_id], due)
        tx.wake = True
    return len(sendable), len(fitting) - len(sendable)
