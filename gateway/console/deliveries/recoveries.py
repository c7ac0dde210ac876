"""The pages of jobs that recover or backfill deliveries: form, confirmation, progress, cancel."""

from aiohttp import web

from gateway.console.deliveries import recovery_form
from gateway.console.deliveries.recovery_form import Asked
from gateway.console.frame import pages, polling, templates
from gateway.console.frame.forms import Form
from gateway.console.frame.guard import Visitor
from gateway.domain.webhooks import recoveries
from gateway.records.errors import Refusal
from gateway.server.app_keys import CONFIG, DB, REQUEST_ID
from gateway.server.telemetry.logs import logger
from gateway.server.telemetry.metrics import METRICS
from outbox.queue.replays import jobs


async def show(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """Show the form of a new job, and the webhook's latest jobs."""
    now = request.app[DB].clock.wall()
    backfill = request.query.get("kind") == "backfill"
    return await _form(request, visitor, recovery_form.fresh(backfill, now, visitor.actor.zone))


async def start(request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
    """Tell how many deliveries the job will make, and start it after the confirmation."""
    db, webhook_id = request.app[DB], pages.id_of(request)
    asked = recovery_form.read(form, db.clock.wall(), visitor.actor.zone)
    if asked.draft is None:
        return await _form(request, visitor, asked)
    # A count may read many rows, so it takes the turn of its owner.
    count = await db.scan(
        visitor.actor.owner_id, recoveries.count, visitor.actor, webhook_id, asked.draft
    )
    if form.text("confirmed") != asked.question:
        webhook, _ = await db.read(recoveries.listed, visitor.actor, webhook_id)
        context = {
            "webhook": webhook, "asked": asked, "count": count, "draft": asked.draft,
            "seconds": -(-count.total // asked.draft.rate),
        }  # fmt: skip
        return templates.render(request, visitor, "recover_confirm.html", context)
    job_id = await db.write(recoveries.start, visitor.actor, webhook_id, asked.draft, count.total)
    logger().info(
        "job_started", request_id=request[REQUEST_ID], job=job_id, webhook_id=webhook_id,
        kind="backfill" if asked.backfill else "recover", total=count.total,
    )  # fmt: skip
    return pages.to(f"/console/jobs/{job_id}", "job_started")


async def job(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """Show a job and how far it is; htmx polls while it runs."""
    found, webhook = await request.app[DB].read(recoveries.one, visitor.actor, pages.id_of(request))
    past = found.made + found.refused
    context = {
        "job": found, "webhook": webhook, "past": past, "total": max(found.total, past),
        "waits": found.state == "running" and webhook.state != "active",
    }  # fmt: skip
    return polling.live(request, visitor, "job.html", "parts/job.html", context)


async def cancel(request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
    """Cancel a job; the deliveries that it has made stay."""
    job_id = pages.id_of(request)
    ended = await request.app[DB].write(recoveries.cancel, visitor.actor, job_id)
    if ended is None:
        raise Refusal("conflict", "error.job_ended")
    request.app[METRICS].job_ended(ended.kind, "cancelled")
    return pages.to(f"/console/jobs/{job_id}", "job_cancelled")


async def _form(request: web.Request, visitor: Visitor, asked: Asked) -> web.StreamResponse:
    webhook, latest = await request.app[DB].read(
        recoveries.listed, visitor.actor, pages.id_of(request)
    )
    context = {
        "webhook": webhook, "jobs": latest, "asked": asked, "typed": asked.typed,
        "faults": asked.faults, "ends": recovery_form.ENDS, "least": jobs.SLOWEST,
        "most": jobs.FASTEST, "zone": visitor.actor.zone,
        "days": request.app[CONFIG].retention.deliveries_days,
    }  # fmt: skip
    return templates.render(
        request, visitor, "recover.html", context, status=400 if asked.faults else 200
    )
