"""Jobs that send much to a webhook: recover failed deliveries, backfill it, or send a snapshot.

A job is a row. Whoever leads the installation moves it on: see outbox.worker.recovering.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import msgspec

from outbox.database import locks, times
from outbox.database.moving_owners import is_here
from outbox.database.transaction import Row, Tx
from outbox.durations import DAY
from outbox.queue.replays import job_selection
from outbox.queue.replays.job_selection import Selection
from outbox.queue.state import lanes
from outbox.states import End, JobKind, JobState

MOST_RUNNING = 10
"""Jobs of an owner that run at the same time."""
KEPT_EACH = 50
"""Ended jobs of a webhook; a new job deletes the oldest of more."""
SLOWEST, FASTEST = 1, 1_000
"""Limits of the rate, in events per second."""
COUNTED = 500
"""Pages of events that a count reads at most."""
LASTS = 30 * DAY
"""Microseconds: a job that runs longer ends, and an ended one is deleted after the same time."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What a new job does. No `ends` means a backfill; no `names` means all events."""

    ends: tuple[End, ...]
    names: tuple[str, ...] | None
    since: int
    until: int
    rate: int


@dataclass(frozen=True, slots=True)
class Job:
    """A job; times are microseconds UTC. `total` is what it was expected to make."""

    id: str
    owner_id: str
    webhook_id: str
    user_id: str
    kind: JobKind
    state: JobState
    ends: tuple[End, ...]
    names: tuple[str, ...] | None
    since_at: int
    until_at: int
    place: int
    last_seq: int
    rate: int
    total: int
    made: int
    refused: int
    created_at: int
    paced_at: int
    finished_at: int | None
    reason: str | None = None
    """Why it cannot run, or ended although nobody cancelled it."""
    reached_at: int = 0
    reached: str = ""
    """Of a snapshot: the last record that it has passed of the kind at `place`, and its time."""

    @property
    def selection(self) -> Selection:
        """The events that it replays."""
        names = None if self.names is None else frozenset(self.names)
        return Selection(
            owner_id=self.owner_id,
            webhook_id=self.webhook_id,
            ends=self.ends,
            names=names,
            since=self.since_at,
            until=self.until_at,
            last_seq=self.last_seq,
        )


DAMAGED = "what it does is stored in a damaged row"
FAILED = "an internal error; the log tells it"


class TooMany(Exception):
    """The owner has MOST_RUNNING running jobs."""


_COLUMNS = ", ".join(Job.__dataclass_fields__)
_LAST_SEQ = "select seq from outbox_state"
# New jobs of one owner wait for each other, so that two cannot both take the last place.
_ONE_AT_A_TIME = locks.held_of(locks.JOBS_OF)
_INSERT = """
insert into jobs (id, owner_id, webhook_id, user_id, kind, state, ends, names, since_at, until_at,
  place, last_seq, rate, total, created_at, paced_at)
values ($1, $2, $3, $4, $5, 'running', $6, $7, $8, $9, $10, $11, $12, $13, $14, $14)
"""
_FORGET = """
delete from jobs where webhook_id = $1 and state <> 'running' and id < (
  select id from jobs where webhook_id = $1 order by id desc limit 1 offset $2)
"""
_END_LATE = """
update jobs set state = 'expired', finished_at = $1 where id in (
  select id from jobs where state = 'running' and created_at < $2 order by id limit $3
  /*postgres for update skip locked*/)
"""
_PURGE = """
delete from jobs where id in (
  select id from jobs where finished_at < $1 order by finished_at limit $2
  /*postgres for update skip locked*/)
"""


async def choose(tx: Tx, owner_id: str, webhook_id: str, draft: Draft) -> Selection:
    """Return the selection of a job that would begin now."""
    row = await tx.one(_LAST_SEQ)
    names = None if draft.names is None else frozenset(draft.names)
    return Selection(
        owner_id=owner_id,
        webhook_id=webhook_id,
        ends=draft.ends,
        names=names,
        since=draft.since,
        until=draft.until,
        last_seq=0 if row is None else int(row["seq"]),
    )


async def count(tx: Tx, selection: Selection) -> tuple[int, bool]:
    """Return how many events are chosen, and whether all events were read."""
    place = await job_selection.start(tx, selection)
    selection = await job_selection.within(tx, selection)
    total = 0
    for _ in range(COUNTED):
        page = await job_selection.look(tx, selection, place, job_selection.PAGE)
        total += len(page.events)
        if not page.more:
            return total, True
        place = page.place
    return total, False


async def create(
    tx: Tx, *, owner_id: str, webhook_id: str, user_id: str, draft: Draft, total: int
) -> str:
    """Start a job that replays events; return its id. Raise TooMany."""
    await _lock(tx, owner_id, webhook_id)
    selection = await choose(tx, owner_id, webhook_id, draft)
    new = _NewJob(
        owner_id,
        webhook_id,
        user_id,
        kind="recover" if draft.ends else "backfill",
        draft=draft,
        total=total,
        place=await job_selection.start(tx, selection),
        last_seq=selection.last_seq,
    )
    return await _insert(tx, new)


async def create_snapshot(
    tx: Tx, *, owner_id: str, webhook_id: str, user_id: str, names: tuple[str, ...], rate: int,
    total: int,
) -> str:  # fmt: skip
    """Start a job that sends the events `names` of all records; return its id. Raise TooMany."""
    await _lock(tx, owner_id, webhook_id)
    draft = Draft((), names, 0, tx.now, rate)
    new = _NewJob(owner_id, webhook_id, user_id, kind="snapshot", draft=draft, total=total)
    return await _insert(tx, new)


async def _lock(tx: Tx, owner_id: str, webhook_id: str) -> None:
    """Take the place of a new job. Raise TooMany."""
    await tx.one(_ONE_AT_A_TIME, owner_id)
    row = await tx.one(
        "select count(*) as had from jobs where owner_id = $1 and state = 'running'", owner_id
    )
    if row is not None and row["had"] >= MOST_RUNNING:
        raise TooMany
    # The lane first, because the removal of a webhook takes its lock before it deletes jobs.
    await lanes.lock(tx, [webhook_id])


@dataclass(frozen=True, slots=True)
class _NewJob:
    owner_id: str
    webhook_id: str
    user_id: str
    kind: JobKind
    draft: Draft
    total: int
    place: int = 0
    last_seq: int = 0


async def _insert(tx: Tx, new: _NewJob) -> str:
    draft = new.draft
    job_id = tx.new_id()
    await tx.run(
        _INSERT,
        job_id, new.owner_id, new.webhook_id, new.user_id, new.kind, json.dumps(draft.ends),
        None if draft.names is None else json.dumps(draft.names), draft.since, draft.until,
        new.place, new.last_seq, draft.rate, new.total, tx.now,
    )  # fmt: skip
    await tx.run(_FORGET, new.webhook_id, KEPT_EACH)
    return job_id


async def one(tx: Tx, job_id: str) -> Job | None:
    """Return the job of this id, of any owner."""
    row = await tx.one(f"select {_COLUMNS} from jobs where id = $1", job_id)
    return None if row is None else _job(row)


async def listed(tx: Tx, webhook_id: str, most: int = 20) -> list[Job]:
    """Return the latest jobs of a webhook, the newest first."""
    rows = await tx.all(
        f"select {_COLUMNS} from jobs where webhook_id = $1 order by id desc limit $2",
        webhook_id,
        most,
    )
    return [_job(row) for row in rows]


async def running(tx: Tx, most: int = 100, *, after: str = "", snapshots: bool = True) -> list[Job]:
    """Return jobs that run at active webhooks, those behind the id `after`, the oldest first.

    A job of an owner who moves waits until he has arrived.

    Without `snapshots`, only those that replay events.
    """
    rows = await tx.all(
        f"""
        select {_COLUMNS} from jobs where state = 'running' and webhook_id in (
          select webhook_id from lanes where active = true)
        and {is_here("jobs.owner_id")} and ($2 or kind <> 'snapshot') and id > $3
        order by id limit $1
        """,
        most,
        snapshots,
        after,
    )
    return [_job(row) for row in rows]


async def cancel(tx: Tx, job_id: str, reason: str | None = None) -> bool:
    """End a running job, with a `reason` if it cannot run; what it has made stays.

    Return False when it does not run.
    """
    done = await tx.run(
        "update jobs set state = 'cancelled', reason = $3, finished_at = $2"
        " where id = $1 and state = 'running'",
        job_id,
        tx.now,
        reason,
    )
    return done == 1


async def purge(tx: Tx, limit: int) -> int:
    """Delete up to `limit` jobs that ended long ago, and end late ones; return how many went."""
    before = await times.earlier(tx) - LASTS
    await tx.run(_END_LATE, tx.now, before, limit)
    return await tx.run(_PURGE, before, limit)


def _job(row: Row) -> Job:
    """Return the job of a row; with a damaged selection it has a reason and selects nothing."""
    values: dict[str, Any] = {name: row[name] for name in Job.__dataclass_fields__}
    try:
        ends, names = _texts(row["ends"]), row["names"]
        values["ends"], values["names"] = ends, None if names is None else _texts(names)
        damaged = (row["kind"] == "recover") != bool(ends)
        damaged |= row["kind"] == "snapshot" and not values["names"]
    except (ValueError, TypeError):
        damaged = True
    if damaged:
        values |= {"ends": (), "names": (), "reason": row["reason"] or DAMAGED}
    return Job(**values)


def _texts(text: str) -> tuple[str, ...]:
    """Parse a list of texts. Raise ValueError, TypeError."""
    return tuple(msgspec.json.decode(text, type=list[str]))
