"""`carteiro replay`: sends the failed or selected deliveries of a webhook again.

Selected deliveries are replayed in one transaction, all others by a job, as in the console. The
command moves its job on until it ends, with or without a server beside it.
"""

import asyncio
import re
import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import get_args

from gateway.cli.commands import Say, existing
from gateway.cli.data.progress_bar import Progress
from gateway.domain.webhooks import recoveries, replays
from gateway.records.audit import Actor
from gateway.records.values import dates
from gateway.server.config import Config
from gateway.server.program import program_version
from gateway.server.telemetry import logs
from outbox import webhooks
from outbox.database.transaction import Database, Tx
from outbox.durations import SECOND
from outbox.errors import CannotStart, OutboxError
from outbox.ids import is_id
from outbox.queue.log import delivery_log
from outbox.queue.replays import delivery_steering, jobs
from outbox.queue.replays.jobs import FASTEST, SLOWEST, Draft, Job
from outbox.queue.replays.replay import NotReplayable
from outbox.states import ERASED, End
from outbox.webhooks import Webhook
from outbox.worker.recovering import TICK_SECONDS, Recovering

MOST_WAITING = 10_000
"""Waiting deliveries are counted up to this number."""
AGO = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)(s|min|h|d)")
SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
ENDS: Mapping[str, tuple[End, ...]] = {
    "failed": ("exhausted", "gone", "dead"),
    **{state: (state,) for state in get_args(End)},
}


class NotAll(OutboxError):
    """Some deliveries were not replayed; the text says how many, and why."""


async def replay(config: Config, arguments: Namespace, say: Say) -> None:
    """Replay deliveries of a webhook. Raise CannotStart, NotAll."""
    async with existing(config) as db:
        webhook = await _webhook(db, arguments.webhook)
        actor = Actor(webhook.owner_id, "system")
        if arguments.delivery:
            await _selected(db, actor, webhook, arguments, say)
        else:
            await _since(db, actor, webhook, arguments, say)


async def _webhook(db: Database, webhook_id: str) -> Webhook:
    webhook = await db.read(webhooks.one, webhook_id.lower()) if is_id(webhook_id) else None
    if webhook is None:
        raise CannotStart(f"there is no webhook {webhook_id}; its page in the console shows the id")
    return webhook


async def _selected(
    db: Database, actor: Actor, webhook: Webhook, arguments: Namespace, say: Say
) -> None:
    """Replay exactly these deliveries, all or none."""
    ids = list(dict.fromkeys(arguments.delivery))
    for delivery_id in ids:
        row = await db.read(_delivery, delivery_id.lower()) if is_id(delivery_id) else None
        if row != webhook.id:
            raise CannotStart(f"this webhook has no delivery {delivery_id}")
    if not arguments.dry_run:
        await db.write(_all, actor, [delivery_id.lower() for delivery_id in ids])
    say(_deliveries(len(ids), "would be replayed" if arguments.dry_run else "replayed"))
    if webhook.state != "active":
        say(_parked(webhook))


async def _delivery(tx: Tx, delivery_id: str) -> str | None:
    delivery = await delivery_log.one(tx, delivery_id)
    return None if delivery is None else delivery.webhook_id


async def _all(tx: Tx, actor: Actor, ids: list[str]) -> None:
    for delivery_id in ids:
        try:
            await replays.one(tx, actor, delivery_id)
        except NotReplayable as why:
            raise CannotStart(f"{delivery_id}: {why} Nothing is replayed.") from None


async def _since(
    db: Database, actor: Actor, webhook: Webhook, arguments: Namespace, say: Say
) -> None:
    """Count what the options select, or replay it by a job; tell what is tried in any case."""
    draft = _draft(arguments, db.clock.wall())
    count = await db.scan(actor.owner_id, recoveries.count, actor, webhook.id, draft)
    job: Job | None = None
    if arguments.dry_run:
        many = "" if count.complete else "at least "
        say(many + _deliveries(count.total, "would be replayed"))
    elif webhook.state == "active" or count.total or not count.complete:
        job_id = await db.write(recoveries.start, actor, webhook.id, draft, count.total)
        job = await _ended(db, actor, job_id)
        webhook = await _webhook(db, webhook.id)
        say(_deliveries(job.made, "replayed"))
    else:
        say(_deliveries(0, "replayed"))
    if webhook.state == "active":
        await _tell_retries(db, webhook, say)
    elif count.total and (job is None or job.state == "running"):
        say(_parked(webhook))
    if job is not None:
        _must_be_whole(job)


async def _tell_retries(db: Database, webhook: Webhook, say: Say) -> None:
    """Tell what has attempts left, which is not replayed."""
    waiting, due_in = await db.read(delivery_steering.retries, webhook.id, MOST_WAITING)
    if waiting:
        number = f"{waiting:,}" if waiting < MOST_WAITING else f"{waiting:,} or more"
        first = dates.show(db.clock.wall() + due_in)
        say(f"Still to be tried by their schedule: {number}, the first at {first}.")


def _draft(arguments: Namespace, now: int) -> Draft:
    """Return the job that the options describe. Raise CannotStart."""
    since = _instant("--since", arguments.since, now)
    until = now if arguments.until is None else _instant("--until", arguments.until, now)
    if since >= until:
        raise CannotStart("--since is not before --until")
    if not SLOWEST <= arguments.rate <= FASTEST:
        raise CannotStart(f"--rate must be {SLOWEST} to {FASTEST} replays a second")
    return Draft(ENDS[arguments.state], None, since, until, arguments.rate)


async def _ended(db: Database, actor: Actor, job_id: str) -> Job:
    """Move the job on until it ends or its webhook stops; return it.

    Cancelled by Ctrl-C, it cancels the job. Raise CannotStart when the webhook is deleted.
    """
    # A server logs the ends of jobs; a person needs the errors.
    logs.configure(
        "error", clock=db.clock, node=db.ids.new(db.clock.wall()), version=program_version()
    )
    runner = Recovering(db)
    try:
        with Progress("replay", sys.stderr, db.clock) as progress:
            while True:
                job, active = await db.read(_state, job_id)
                if job.state != "running" or not active:
                    return job
                done = (job.made + job.refused) / max(job.total, 1)
                progress.at(done, f"{job.made} of {job.total} replayed")
                await runner.step(job)
                await asyncio.sleep(TICK_SECONDS)
    except asyncio.CancelledError:
        await db.write(recoveries.cancel, actor, job_id)
        job, _ = await db.read(_state, job_id)
        sys.stderr.write(
            f"carteiro: {job.made} of {job.total} replayed, the job is cancelled; "
            f"the same command with --until {dates.show(job.until_at)} does the rest\n"
        )
        raise


async def _state(tx: Tx, job_id: str) -> tuple[Job, bool]:
    """Return the job, and whether its webhook is active. Raise CannotStart."""
    job = await jobs.one(tx, job_id)
    webhook = None if job is None else await webhooks.one(tx, job.webhook_id)
    if job is None or webhook is None:
        raise CannotStart("the webhook was deleted meanwhile, and its deliveries with it")
    return job, webhook.state == "active"


def _must_be_whole(job: Job) -> None:
    """Raise NotAll when the job ended before its end, or could not replay each delivery."""
    if job.state not in ("running", "done"):
        raise NotAll(f"The job was {job.state}{'' if job.reason is None else f': {job.reason}'}.")
    if job.refused:
        raise NotAll(
            f"{job.refused} could not be replayed: their events were {ERASED}, "
            "or are past the retention time."
        )


def _deliveries(count: int, done: str) -> str:
    return f"{count} {'delivery' if count == 1 else 'deliveries'} {done}."


def _parked(webhook: Webhook) -> str:
    return f"The webhook is {webhook.state}: they wait until somebody activates it."


def _instant(option: str, text: str, now: int) -> int:
    """Return the time that `text` names: an instant, or how long ago."""
    ago = AGO.fullmatch(text)
    if ago is not None:
        return max(now - round(float(ago[1]) * SECONDS[ago[2]] * SECOND), 0)
    moment = dates.parse(text)
    if moment is None or moment < 0:
        raise CannotStart(
            f"{option} {text!r} must be a time such as 2026-11-22T08:00:00Z, or how long ago, "
            "such as 90min, 2h or 3d"
        )
    return moment
