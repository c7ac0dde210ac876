"""The forms that steer deliveries: try one now, cancel or skip it, replay a selection."""

from collections import Counter

from aiohttp import web

from gateway.console.layout import pages, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.domain.webhooks import deliveries
from gateway.records.errors import Refusal
from gateway.server.app_keys import DB, REQUEST_ID
from gateway.server.telemetry.logs import logger
from gateway.server.telemetry.metrics import METRICS
from outbox.ids import is_id


async def try_now(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Make a waiting delivery the next one of its webhook."""
    delivery_id = pages.id_of(request)
    held = await request.app[DB].write(deliveries.try_now, visitor.actor, delivery_id)
    return pages.to(
        f"/console/deliveries/{delivery_id}", f"hastened_{held.reason}" if held else "hastened"
    )


async def cancel(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Cancel a delivery that waits."""
    delivery_id = pages.id_of(request)
    if not await _cancel(request, visitor, [delivery_id]):
        raise Refusal("conflict", "error.not_waiting")
    return pages.to(f"/console/deliveries/{delivery_id}", "cancelled")


async def skip(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Cancel a delivery that others of its record wait for."""
    app = request.app
    webhook_id = await app[DB].write(deliveries.skip, visitor.actor, pages.id_of(request))
    app[METRICS].delivery_finished(webhook_id, "cancelled", None)
    return pages.to(f"/console/webhooks/{webhook_id}", "skipped")


async def selected(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Replay or cancel the selected deliveries; ask first where a receiver gets an event twice.

    The fields: `delivery` (repeated), `act` (replay or cancel), `back` (the page with the list) and
    `confirmed`, which names the question that the user has confirmed.
    """
    ids = [one.lower() for one in form.all("delivery")]
    if not all(map(is_id, ids)):
        raise Refusal("not_found", "error.not_found_help")
    back = _back(form.text("back"))
    if form.text("act") == "cancel":
        await _cancel(request, visitor, ids)
        return pages.to(back, "selection_cancelled")
    selection, replayed = await request.app[DB].write(
        deliveries.replay_all, visitor.actor, ids, form.text("confirmed")
    )
    if not replayed:
        context = {"selection": selection, "back": back}
        return templates.render(request, visitor, "selection.html", context)
    for old, new in zip(sorted(selection.ids), replayed, strict=True):
        logger().info("replayed", request_id=request[REQUEST_ID], delivery_id=new, replay_of=old)
    return pages.to(back, "selection_replayed")


async def _cancel(request: web.Request, visitor: SignedIn, ids: list[str]) -> int:
    if len(ids) > deliveries.MOST:
        raise Refusal("validation_error", f"Select at most {deliveries.MOST} deliveries at a time.")
    webhooks = Counter(await request.app[DB].write(deliveries.cancel, visitor.actor, ids))
    for webhook_id in webhooks.elements():
        request.app[METRICS].delivery_finished(webhook_id, "cancelled", None)
    return webhooks.total()


def _back(path: str) -> str:
    """Return the page to go back to: one of ours, never an address of somebody else."""
    ours = path.startswith("/console/") and path.isascii() and path.isprintable()
    return path if ours and "\\" not in path else "/console/webhooks"
