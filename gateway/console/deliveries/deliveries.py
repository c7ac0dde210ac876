"""The pages of one delivery: its attempts, its replay."""

from aiohttp import web

from gateway.console.deliveries.timeline import course
from gateway.console.frame import display, pages, polling, templates
from gateway.console.frame.forms import Form
from gateway.console.frame.guard import Visitor
from gateway.console.webhooks.curl import command
from gateway.console.webhooks.doctor import usual_schedule
from gateway.domain.accounts import users
from gateway.domain.webhooks import pings, replays
from gateway.records.access import Actor, must_own
from gateway.records.errors import Refusal
from gateway.server.app_keys import DB, REQUEST_ID
from gateway.server.telemetry.logs import logger
from outbox import webhooks as endpoints
from outbox.database.transaction import Tx
from outbox.queue.log import delivery_log
from outbox.queue.log.delivery_types import Announced, Attempt, Delivery, shown
from outbox.queue.order import record_lines
from outbox.queue.replays import replay
from outbox.queue.state.policy import Schedule
from outbox.webhooks import Webhook

UNFINISHED = frozenset({"ready", "in_flight", "held"})


async def show(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """Show a delivery: its event, the exact body and the latest attempts."""
    db = request.app[DB]
    delivery, webhook, event, attempts, made, others, by, schedule, place = await db.read(
        _whole, visitor.actor, pages.id_of(request), usual_schedule(request)
    )
    now = db.clock.wall()
    active = webhook is not None and webhook.state == "active"
    context = {
        "delivery": delivery, "webhook": webhook, "event": event, "attempts": attempts,
        "others": others, "replayed_by": by, "state": shown(delivery, active),
        "state_of": lambda other: shown(other, active),
        "stages": display.stages, "moving": delivery.state in UNFINISHED and active,
        "question": _question(delivery), "place": place, "lines_cap": record_lines.COUNTED,
        "course": course(
            delivery, attempts, schedule, now, visitor.actor.zone, parked=not active, made=made
        ),
        "curl_of": lambda attempt: command(attempt, event.body if event else None),
    }  # fmt: skip
    return polling.live(request, visitor, "delivery.html", "parts/delivery.html", context)


async def replay_page(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """Ask for confirmation before a replay of a delivered or waiting delivery."""
    delivery_id = pages.id_of(request)
    delivery = await request.app[DB].read(_own, visitor.actor, delivery_id)
    return templates.render(
        request, visitor, "replay.html", {"delivery": delivery, "question": _question(delivery)}
    )


async def replay_one(request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
    """Replay a delivery and show the new one, or ask for confirmation first.

    The field `confirmed` names the question that the user has confirmed.
    """
    delivery_id = pages.id_of(request)
    try:
        replayed, active = await request.app[DB].write(
            _replay, visitor.actor, delivery_id, form.text("confirmed")
        )
    except replay.NotReplayable as why:
        raise Refusal("conflict", str(why)) from None
    if not replayed:
        return pages.to(f"/console/deliveries/{delivery_id}/replay")
    # Its attempts bear the request id of the event; this line leads from the replay to them.
    logger().info(
        "replayed", request_id=request[REQUEST_ID], delivery_id=replayed, replay_of=delivery_id
    )
    return pages.to(f"/console/deliveries/{replayed}", "replayed" if active else "replay_parked")


async def _own(tx: Tx, actor: Actor, delivery_id: str) -> Delivery:
    delivery = await delivery_log.one(tx, delivery_id)
    if delivery is None:
        raise Refusal("not_found", "error.not_found_help")
    must_own(actor, delivery.owner_id, "delivery")
    return delivery


async def _whole(
    tx: Tx, actor: Actor, delivery_id: str, usual: Schedule
) -> tuple[
    Delivery, Webhook | None, Announced | None, list[Attempt], int, list[Delivery], str | None,
    Schedule, record_lines.Place | None,
]:  # fmt: skip
    delivery = await _own(tx, actor, delivery_id)
    by = await users.one(tx, delivery.replayed_by) if delivery.replayed_by else None
    return (
        delivery,
        await endpoints.one(tx, delivery.webhook_id),
        await delivery_log.event(tx, delivery.event_id),
        await delivery_log.attempts(tx, delivery_id),
        await delivery_log.attempted(tx, delivery_id),
        await delivery_log.siblings(tx, delivery),
        by["name"] if by is not None else None,
        await pings.schedule_of(tx, delivery.webhook_id, usual),
        await record_lines.place(tx, delivery_id),
    )


def _question(delivery: Delivery) -> str:
    """Return the question to ask before a replay, or an empty text."""
    if delivery.state in UNFINISHED:
        return "waiting"
    return "delivered" if delivery.state == "delivered" else ""


async def _replay(
    tx: Tx, actor: Actor, delivery_id: str, confirmed: str
) -> tuple[str | None, bool]:
    """Return the new delivery's id (None without confirmation) and whether it is sent now."""
    delivery = await _own(tx, actor, delivery_id)
    actor.must("write")
    if delivery.origin != "test" and _question(delivery) not in ("", confirmed):
        return None, False
    replayed = await replays.one(tx, actor, delivery_id)
    webhook = await endpoints.one(tx, delivery.webhook_id)
    return replayed, webhook is not None and webhook.state == "active"
