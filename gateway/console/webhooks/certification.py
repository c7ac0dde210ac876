"""Certifies the receiver of a webhook by many test events, and shows what they have found."""

from aiohttp import web

from gateway.console.layout import pages, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.domain.webhooks import certification, findings, pings, webhooks
from gateway.server.app_keys import DB, DOCTOR, KEYRING
from gateway.server.http.rate_limits import LIMITS
from gateway.server.telemetry.logs import logger
from outbox.webhooks import Webhook
from outbox.worker.certification.run import Certification
from outbox.worker.request_building import Unreadable, Unsendable

SECONDS = 40.0
"""For all requests: less than the time that proxies and the limit of examinations allow."""
WORTH = 3
"""The seconds' worth of test events that one costs."""


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the page, without a certification."""
    webhook = await request.app[DB].read(webhooks.one, visitor.actor, pages.id_of(request))
    return _page(request, visitor, webhook)


async def certify(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Send the test events, and show each finding."""
    app, actor, webhook_id = request.app, visitor.actor, pages.id_of(request)
    db = app[DB]
    delivery, endpoint = await db.read(pings.of_webhook, actor, webhook_id)
    webhook = await db.read(webhooks.one, actor, webhook_id)
    try:
        sending = app[DOCTOR].request_of(app[KEYRING], delivery, endpoint)
    except (Unreadable, Unsendable) as reason:
        return _page(request, visitor, webhook, reason=str(reason))
    material = certification.material(webhook.events, db.clock.wall(), db.ids)
    with app[LIMITS].examination(actor.owner_id, WORTH):
        result = await app[DOCTOR].certify(sending, material, SECONDS)
    logger().info(
        "webhook_certified", webhook_id=webhook_id, result=result.result, requests=result.sent,
        failed=[one.check for one in result.findings if one.verdict == "failed"],
    )  # fmt: skip
    return _page(request, visitor, webhook, result, sending.timeout_s)


def _page(
    request: web.Request,
    visitor: SignedIn,
    webhook: Webhook,
    result: Certification | None = None,
    timeout_s: float = 0.0,
    reason: str = "",
) -> web.Response:
    t = request[READER].texts
    told = [
        (finding, findings.sentence(t, finding, timeout_s))
        for finding in (result.findings if result else ())
    ]
    context = {
        "webhook": webhook,
        "certified": result,
        "reason": reason,
        "faults": [one for one in told if one[0].verdict != "passed"],
        "passed": [one for one in told if one[0].verdict == "passed"],
        "counts": findings.counts(t, result) if result else "",
        "ids": findings.ids(t, result) if result else "",
    }
    part = "HX-Request" in request.headers
    template = "parts/certification.html" if part else "certification.html"
    return templates.render(request, visitor, template, context)
