"""Recovers, backfills or sends a snapshot to an owner's webhook by a job: count, start, cancel."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from gateway.domain.webhooks import copies, webhooks
from gateway.records import audit
from gateway.records.audit import Actor, must_own
from gateway.records.errors import Fault, Refusal
from gateway.records.values import numbers
from outbox.database.transaction import Tx
from outbox.queue.replays import jobs
from outbox.queue.replays.jobs import Draft, Job
from outbox.queue.state import deletion_marks
from outbox.webhooks import Draft as WebhookDraft
from outbox.webhooks import Webhook
from outbox.webhooks.secrets import KeyRing

NO_SNAPSHOT = "A snapshot sends *.created events; subscribe to those of the records that you want."


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


def rate_of(text: str) -> int | None:
    """Return the typed rate of a job, in deliveries per second; None for a wrong one."""
    return numbers.typed(text, jobs.SLOWEST, jobs.FASTEST)


async def count(tx: Tx, actor: Actor, webhook_id: str, draft: Draft) -> Count:
    """Return how many deliveries a job would make. Raises not_found, forbidden."""
    actor.must("write")
    webhook = await webhooks.one(tx, actor, webhook_id)
    selection = await jobs.choose(tx, webhook.owner_id, webhook_id, draft)
    total, complete = await jobs.count(tx, selection)
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
        raise _too_many() from None
    audit.record(tx, actor, "created", "job", job_id)
    return job_id


def offered(events: Collection[str]) -> Sequence[str]:
    """Return the events that a snapshot can send to a webhook with this subscription."""
    return [name for name in copies.SENT if name in events]


async def snapshot_counts(
    tx: Tx, actor: Actor, webhook_id: str
) -> tuple[Webhook, Mapping[str, int]]:
    """Return a webhook, and how many deliveries a snapshot would make of each event.

    Raises not_found, forbidden.
    """
    webhook = await webhooks.one(tx, actor, webhook_id)
    return webhook, await copies.counts(tx, webhook.owner_id, offered(webhook.events))


async def create_with_snapshot(
    tx: Tx, actor: Actor, draft: WebhookDraft, rate: int, *, secret: str, ring: KeyRing,
    most: int,
) -> Job:  # fmt: skip
    """Create a webhook, and start a snapshot for it in the same transaction; return the job.

    Raises conflict, validation_error when it subscribes to nothing that a snapshot sends.
    """
    webhook_id = await webhooks.create(tx, actor, draft, secret=secret, ring=ring, most=most)
    return await start_snapshot(tx, actor, webhook_id, offered(draft.events), rate)


async def start_snapshot(
    tx: Tx, actor: Actor, webhook_id: str, names: Sequence[str], rate: int
) -> Job:
    """Start a job that sends the events `names` of all records; return it.

    Raises not_found, forbidden, validation_error, conflict when too many run.
    """
    actor.must("write")
    webhook = await webhooks.one(tx, actor, webhook_id)
    resources = tuple(name for name in offered(webhook.events) if name in names)
    if not resources or len(resources) < len(set(names)):
        fault = Fault("snapshot", "no_snapshot", NO_SNAPSHOT)
        raise Refusal("validation_error", fault.sentence, faults=[fault])
    try:
        job_id = await jobs.create_snapshot(
            tx, owner_id=webhook.owner_id, webhook_id=webhook_id, user_id=actor.owner_id,
            names=resources, rate=rate,
            total=sum((await copies.counts(tx, webhook.owner_id, resources)).values()),
        )  # fmt: skip
    except jobs.TooMany:
        raise _too_many() from None
    audit.record(tx, actor, "created", "job", job_id)
    job, _ = await one(tx, actor, job_id)
    return job


def _too_many() -> Refusal:
    return Refusal(
        "conflict", f"{jobs.MOST_RUNNING} jobs run already; wait until one ends, or cancel one."
    )


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
