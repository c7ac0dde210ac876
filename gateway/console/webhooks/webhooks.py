"""The pages of webhooks: list, create, edit, pause, activate, delete, test."""

from typing import Any

from aiohttp import web

from gateway.console.frame import display, pages, polling, reveal, templates
from gateway.console.frame.chart_panel import Window, window
from gateway.console.frame.forms import Form
from gateway.console.frame.guard import Visitor
from gateway.console.webhooks import doctor, guide, options, record_lines
from gateway.domain.catalogue import EVENT_NAMES
from gateway.domain.webhooks import pings, webhooks
from gateway.records.access import Actor
from gateway.records.errors import Refusal
from gateway.server.app_keys import CONFIG, DB, IDS, KEYRING
from gateway.server.http.rate_limits import LIMITS
from gateway.server.telemetry.metrics import METRICS
from outbox.database.transaction import Tx
from outbox.queue.log import delivery_log, series
from outbox.queue.log.series import Figures, Pending
from outbox.queue.order import ordering
from outbox.queue.state import circuits
from outbox.queue.state.figures import FILTERED
from outbox.queue.upkeep import parking
from outbox.sending.request import SECRET_BYTES, new_secret
from outbox.webhooks import Webhook, rotation

LIST = "/console/webhooks"
COUNTED = 100_000
"""The confirmation pages count deliveries up to this number."""


async def index(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """List all webhooks with their health; htmx polls the table."""
    rows = await request.app[DB].read(_with_health, visitor.actor)
    context = {
        "rows": rows, "total": len(EVENT_NAMES), "cap": delivery_log.CAP,
        "state_of": display.webhook_state,
        "most": request.app[CONFIG].limits.webhooks_per_owner,
    }  # fmt: skip
    return polling.live(request, visitor, "webhooks.html", "parts/webhook_rows.html", context)


async def new(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """Show an empty form; with `kind=operational`, that of an operational webhook."""
    listens = request.query.get("kind") == options.OPERATIONAL
    every = webhooks.names_of(True) if listens else ()
    typed = {**options.EMPTY, "listens": listens, "events": every}
    return options.page(request, visitor, None, typed)


async def create(request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
    """Create a webhook; its page then shows the secret once."""
    app = request.app
    typed = options.typed_in(form)
    try:
        draft = options.judged(request, typed)
        secret = new_secret(app[IDS].token(SECRET_BYTES))
        webhook_id = await app[DB].write(
            webhooks.create, visitor.actor, draft, secret=secret, ring=app[KEYRING],
            most=app[CONFIG].limits.webhooks_per_owner,
        )  # fmt: skip
    except Refusal as refusal:
        return options.page(request, visitor, None, typed, refusal)
    await reveal.later(request, visitor, webhook_id, secret)
    return pages.to(f"{LIST}/{webhook_id}", "created")


async def show(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """Show a webhook: state, health, settings, latest deliveries, and the secret of a new one."""
    webhook_id = pages.id_of(request)
    asked = window(request)
    webhook, health, steps, pending, since, standing = await request.app[DB].read(
        _one_with_figures, visitor.actor, webhook_id, asked
    )
    context: dict[str, Any] = {
        "webhook": webhook, "state": display.webhook_state(webhook), "health": health,
        "cap": delivery_log.CAP, "groups": options.groups(webhook.operational),
        "state_of": lambda delivery: display.delivery_state(delivery, webhook.state == "active"),
        "found": None, "attempt": None,
    }  # fmt: skip
    context |= options.settings(request, webhook)
    context["left_out"] = series.total(steps).results[FILTERED]
    context["board"] = asked.board(steps, visitor.actor.zone, since, webhook.created_at)
    context |= {"pending": pending, "standing": standing, "here": f"{LIST}/{webhook_id}"}
    schedule = await request.app[DB].read(
        pings.schedule_of, webhook_id, doctor.usual_schedule(request)
    )
    context["retries"] = doctor.retries(schedule, request.app[DB].clock.wall())
    wait = await request.app[DB].read(circuits.next_probe, webhook_id)
    context["next_probe"] = None if wait is None else request.app[DB].clock.wall() + wait
    context["secret"] = await reveal.now(request, visitor, webhook_id)
    context["programs"] = guide.with_secret(request, context["secret"])
    context |= await record_lines.shown(request, webhook)
    return polling.live(request, visitor, "webhook.html", "parts/webhook_health.html", context)


async def edit_page(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """Show the form with the current settings."""
    webhook = await request.app[DB].read(webhooks.one, visitor.actor, pages.id_of(request))
    kept, fault = options.kept_headers(request, webhook)
    refusal = None if fault is None else Refusal("conflict", fault.message, faults=[fault])
    return options.page(
        request, visitor, webhook, options.typed_for(webhook, kept), refusal, status=200
    )


async def edit(request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
    """Save an edited webhook unless it has changed since the form was loaded."""
    webhook_id = pages.id_of(request)
    webhook = await request.app[DB].read(webhooks.one, visitor.actor, webhook_id)
    typed = options.typed_in(form, webhook)
    seen = form.text("version")
    kept, _ = options.kept_headers(request, webhook)
    try:
        draft = options.judged(request, typed, kept)
        version = int(seen) if seen.isascii() and seen.isdigit() else webhook.version
        turning = await request.app[DB].write(
            webhooks.change, visitor.actor, webhook_id, version, draft, request.app[KEYRING]
        )
        if turning:
            await ordering.finish(request.app[DB], webhook_id, visitor.actor.owner_id)
    except Refusal as refusal:
        if refusal.code == "conflict":
            raise
        return options.page(request, visitor, webhook, typed, refusal)
    return pages.to(f"{LIST}/{webhook_id}", "saved")


async def pause(request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
    """Pause a webhook; its waiting deliveries are parked."""
    webhook_id = pages.id_of(request)
    done = await request.app[DB].write(webhooks.pause, visitor.actor, webhook_id)
    return pages.to(f"{LIST}/{webhook_id}", "paused" if done else "")


async def activate_page(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """Ask what to do with the parked deliveries."""
    webhook, parked = await request.app[DB].read(
        _one_with_parked, visitor.actor, pages.id_of(request)
    )
    # The user chose to pause, but did not choose that the webhook was disabled.
    chosen = "all" if webhook.state == "disabled" else "none"
    context = {"webhook": webhook, "parked": parked, "cap": COUNTED, "chosen": chosen}
    return templates.render(request, visitor, "activate.html", context)


async def activate(request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
    """Activate a webhook; `parked` selects what is sent: none (the default), newest or all."""
    webhook_id = pages.id_of(request)
    await request.app[DB].read(webhooks.one, visitor.actor, webhook_id)
    wanted = form.text("parked") or "none"
    choice = next((choice for choice in parking.CHOICES if choice == wanted), None)
    if choice is None:
        raise Refusal("validation_error", "parked must be none, newest or all.")
    visitor.actor.must("write")
    await parking.activate(request.app[DB], webhook_id, choice, request.app[METRICS])
    return pages.to(f"{LIST}/{webhook_id}", "activated")


async def delete_page(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """Ask for confirmation before a webhook is deleted."""
    webhook, waiting = await request.app[DB].read(
        _one_with_parked, visitor.actor, pages.id_of(request)
    )
    context = {
        "webhook": webhook, "waiting": waiting, "cap": COUNTED,
        "days": request.app[CONFIG].retention.deliveries_days,
    }  # fmt: skip
    return templates.render(request, visitor, "delete.html", context)


async def delete(request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
    """Delete a webhook; its waiting deliveries are cancelled."""
    webhook_id = pages.id_of(request)
    await request.app[DB].read(webhooks.one, visitor.actor, webhook_id)
    visitor.actor.must("write")
    await parking.remove(request.app[DB], webhook_id, request.app[METRICS])
    return pages.to(LIST, "deleted")


async def test(request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
    """Send a sample of an event to this webhook only."""
    webhook_id = pages.id_of(request)
    request.app[LIMITS].test(visitor.actor.owner_id)
    await request.app[DB].write(webhooks.test, visitor.actor, webhook_id, form.text("event"))
    return pages.to(f"{LIST}/{webhook_id}", "tested")


async def _with_health(tx: Tx, actor: Actor) -> list[tuple[Webhook, delivery_log.Health]]:
    return [
        (webhook, await delivery_log.health(tx, webhook.id))
        for webhook in await webhooks.listed(tx, actor)
    ]


async def _one_with_figures(
    tx: Tx, actor: Actor, webhook_id: str, asked: Window
) -> tuple[Webhook, delivery_log.Health, list[Figures], Pending, int, rotation.Standing]:
    webhook = await webhooks.one(tx, actor, webhook_id)
    health = await delivery_log.health(tx, webhook.id)
    chosen = asked.range
    steps = await series.by_step(tx, "webhook", webhook.id, asked.start, chosen.step, chosen.count)
    pending = await series.pending(tx, "webhook", webhook.id, 1)
    standing = await rotation.standing(tx, webhook.id)
    return webhook, health, steps, pending[webhook.id], await series.since(tx), standing


async def _one_with_parked(tx: Tx, actor: Actor, webhook_id: str) -> tuple[Webhook, int]:
    webhook = await webhooks.one(tx, actor, webhook_id)
    return webhook, await parking.count(tx, webhook_id, COUNTED)
