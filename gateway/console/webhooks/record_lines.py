"""The lines of a webhook that keeps the order of each record, and a form that skips a head."""

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from gateway.console.frame import pages
from gateway.console.frame.forms import Form
from gateway.console.frame.guard import Visitor
from gateway.domain.webhooks import record_lines
from gateway.server.app_keys import DB
from gateway.server.telemetry.metrics import METRICS
from outbox.queue.order import record_lines as queue
from outbox.webhooks import Webhook


async def shown(request: web.Request, webhook: Webhook) -> Mapping[str, Any]:
    """Return what the page of a webhook shows of its lines: None when nothing waits in one."""
    found = await request.app[DB].read(queue.of_webhook, webhook.id) if webhook.ordered else None
    return {"lines": found if found and found.held else None, "lines_cap": queue.COUNTED}


async def skip(request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
    """Cancel a delivery that others of its record wait for."""
    app = request.app
    webhook_id = await app[DB].write(record_lines.skip, visitor.actor, pages.id_of(request))
    app[METRICS].delivery_finished(webhook_id, "cancelled", None)
    return pages.to(f"/console/webhooks/{webhook_id}", "skipped")
