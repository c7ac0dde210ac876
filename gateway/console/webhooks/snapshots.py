"""The page that starts a snapshot: a delivery for each record that is there."""

from collections.abc import Sequence

from aiohttp import web

from gateway.console.layout import pages, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.domain.webhooks import recoveries
from gateway.server.app_keys import DB, REQUEST_ID
from gateway.server.telemetry.logs import logger
from outbox.queue.replays.jobs import FASTEST, SLOWEST, Job

USUAL_RATE = 100


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the form of a snapshot: which records, how many there are, and how fast."""
    return await _form(request, visitor, None, str(USUAL_RATE), {})


async def start(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Start the snapshot, and show its job."""
    names, typed = form.all("names"), form.text("rate").strip()
    rate = recoveries.rate_of(typed)
    faults = {}
    if rate is None:
        faults["rate"] = "recover.fault.rate"
    if not names:
        faults["names"] = "snapshot.fault.names"
    if rate is None or faults:
        return await _form(request, visitor, names, typed, faults)
    job = await request.app[DB].write(
        recoveries.start_snapshot, visitor.actor, pages.id_of(request), names, rate
    )
    tell(request, job)
    return pages.to(f"/console/jobs/{job.id}", "job_started")


def tell(request: web.Request, job: Job) -> None:
    """Log that a snapshot was started."""
    logger().info(
        "job_started", request_id=request[REQUEST_ID], job=job.id, webhook_id=job.webhook_id,
        kind=job.kind, total=job.total,
    )  # fmt: skip


async def _form(
    request: web.Request, visitor: SignedIn, names: Sequence[str] | None, rate: str,
    faults: dict[str, str],
) -> web.StreamResponse:  # fmt: skip
    webhook, counts = await request.app[DB].read(
        recoveries.snapshot_counts, visitor.actor, pages.id_of(request)
    )
    context = {
        "webhook": webhook, "counts": counts, "chosen": counts if names is None else names,
        "rate": rate, "faults": faults, "least": SLOWEST, "most": FASTEST,
    }  # fmt: skip
    return templates.render(
        request, visitor, "snapshot.html", context, status=400 if faults else 200
    )
