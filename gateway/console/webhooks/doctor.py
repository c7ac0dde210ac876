"""The doctor of a webhook: examines its receiver now, and previews the times of retries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from gateway.console.layout import display, pages, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.domain.webhooks import pings, webhooks
from gateway.server.app_keys import DB, DOCTOR, KEYRING
from gateway.server.http.rate_limits import LIMITS
from gateway.server.telemetry.logs import logger
from outbox.durations import SECOND
from outbox.queue.log.delivery_types import Attempt
from outbox.queue.state.policy import Schedule
from outbox.sending.request_targets import requested
from outbox.webhooks import Webhook
from outbox.worker.examination import Examination


@dataclass(frozen=True, slots=True)
class Retry:
    """When an attempt follows the first one; durations and times are microseconds."""

    number: int
    usual: int
    earliest: int
    latest: int


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the page of the doctor, without an examination."""
    webhook, schedule = await request.app[DB].read(
        pings.with_schedule, visitor.actor, pages.id_of(request), usual_schedule(request)
    )
    return _page(request, visitor, webhook, None, schedule)


async def examine(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Send a signed test event to the receiver and show each step."""
    app, actor, webhook_id = request.app, visitor.actor, pages.id_of(request)
    delivery, endpoint = await app[DB].read(pings.of_webhook, actor, webhook_id)
    with app[LIMITS].examination(actor.owner_id):
        examination = await app[DOCTOR].examine_webhook(app[KEYRING], delivery, endpoint)
    logger().info(
        "webhook_examined",
        webhook_id=webhook_id,
        outcome=examination.decision.reason,
        failed_step=examination.failed.name if examination.failed else None,
    )
    webhook = await app[DB].read(webhooks.one, actor, webhook_id)
    return _page(request, visitor, webhook, examination, examination.schedule)


def retries(schedule: Schedule, now: int) -> Sequence[Retry]:
    """Return when each retry follows, if all attempts from `now` on fail at once."""
    return [
        Retry(
            retry.number,
            round(retry.usual * SECOND),
            now + round(retry.earliest * SECOND),
            now + round(retry.latest * SECOND),
        )
        for retry in schedule.preview()
    ]


def usual_schedule(request: web.Request) -> Schedule:
    """Return the schedule of the webhooks that have none of their own."""
    return request.app[DOCTOR].settings.schedule


def attempt_of(examination: Examination) -> Attempt | None:
    """Return what the log would keep of the request; None when nothing could be sent."""
    outcome = examination.outcome
    if outcome is None:
        return None
    return Attempt(
        number=1,
        kind="test",
        outcome=outcome.outcome,
        status=outcome.status,
        error=outcome.error,
        started_at=examination.started_at,
        dns_us=outcome.dns_us,
        connect_us=outcome.connect_us,
        tls_us=outcome.tls_us,
        first_byte_us=outcome.first_byte_us,
        total_us=outcome.total_us,
        address=outcome.address,
        url=requested(examination.url),
        request_headers=list(examination.headers),
        response_headers=[*outcome.response_headers],
        response_body=outcome.response_body,
        truncated=outcome.truncated,
    )


def _page(
    request: web.Request,
    visitor: SignedIn,
    webhook: Webhook,
    examination: Examination | None,
    schedule: Schedule,
) -> web.Response:
    now = request.app[DB].clock.wall()
    context: dict[str, Any] = {
        "webhook": webhook, "found": examination,
        "attempt": attempt_of(examination) if examination else None,
        "retries": retries(schedule, now), "now": now, "stages": display.stages,
    }  # fmt: skip
    template = "parts/examination.html" if "HX-Request" in request.headers else "doctor.html"
    return templates.render(request, visitor, template, context)
