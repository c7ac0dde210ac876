"""Recovers or backfills many deliveries of an owner's webhook by a job: count, start, cancel."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.webhooks import webhooks
from gateway.records import audit
from gateway.records.access import Actor, must_own
from gateway.records.errors import Refusal
from outbox.database.transaction import Tx
from outbox.queue.replays import jobs
from outbox.queue.replays.jobs import Draft, Job
from outbox.queue.state import deletion_marks
from outbox.webhooks import Webhook


@dataclass(frozen=True, slots=True)
class Count:
    """What a job would make at a webhook: how many deliveries, and whether all events were read.

    `left_out` is set when it leaves out events up to this time (microseconds UTC), because their
    deliveries may have been deleted.
    """

    webhook: Webhook
    total: int
    complete: bool
    left_out: int | None


async def count(tx: Tx, actor: Actor, webhook_id: str, draft: Draft) -> Count:
    """Return how many deliveries a job would make. Raises not_found, forbidden."""
    actor.must("write")
    webhook = await webhooks.one(tx, actor, webhook_id)
    chosen = await jobs.choose(tx, webhook.owner_id, webhook_id, draft)
    total, complete = await jobs.count(tx, chosen)
    if draft.ends:
        return Count(webhook, total, complete, None)
    upto = await deletion_marks.upto(tx, webhook_id)
    time = await deletion_marks.time_of(tx, webhook.owner_id, upto)
    left_out = None if time is None or time < draft.since else time
    return Count(webhook, total, complete, left_out)


async def start(tx: Tx, actor: Actor, webhook_id: str, draft: Draft, total: int) -> str:
    """Start a job; return its id. Raises not_found, forbidden, conflict when too many run."""
    actor.must("write")
    webhook = await webhooks.one(tx, actor, webhook_id)
    try:
        job_id = await jobs.create(
            tx, owner_id=webhook.owner_id, webhook_id=webhook_id, user_id=actor.owner_id,
            draft=draft, total=total,
        )  # fmt: skip
    except jobs.TooMany:
        raise Refusal(
            "conflict", f"{jobs.MOST_RUNNING} jobs run already; wait until one ends, or cancel one."
        ) from None
    audit.record(tx, actor, "created", "job", job_id)
    return job_id


async def one(tx: Tx, actor: Actor, job_id: str) -> tuple[Job, Webhook]:
    """Return a job of the actor and its webhook. Raises not_found, forbidden."""
    job = await jobs.one(tx, job_id)
    if job is None:
        raise Refusal("not_found", "This job does not exist.")
    must_own(actor, job.owner_id, "job")
    return job, await webhooks.one(tx, actor, job.webhook_id)


async def listed(tx: Tx, actor: Actor, webhook_id: str) -> tuple[Webhook, Sequence[Job]]:
    """Return a webhook of the actor and its latest jobs. Raises not_found, forbidden."""
    webhook = await webhooks.one(tx, actor, webhook_id)
    return webhook, await jobs.listed(tx, webhook_id)


async def cancel(tx: Tx, actor: Actor, job_id: str) -> Job | None:
    """Cancel a running job; return it, None when it has ended. Raises not_found, forbidden."""
    actor.must("write")
    job, _ = await one(tx, actor, job_id)
    if not await jobs.cancel(tx, job_id):
        return None
    audit.record(tx, actor, "canceled", "job", job_id)
    return job
