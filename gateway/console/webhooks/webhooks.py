"""The pages of webhooks: list, create, edit, pause, activate, delete, test."""

from collections.abc import Sequence
from typing import Any

from aiohttp import web

from gateway.console.layout import display, pages, polling, reveal, templates
from gateway.console.layout.charts import window
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.console.webhooks import doctor, guide, webhook_form
from gateway.console.webhooks.snapshots import USUAL_RATE, tell
from gateway.domain.catalogue import EVENT_NAMES
from gateway.domain.webhooks import overviews, recoveries, settings, subscriptions, webhooks
from gateway.domain.webhooks.deliveries import LINES_COUNTED
from gateway.domain.webhooks.subscriptions import Twin
from gateway.records.errors import Refusal
from gateway.records.values import numbers
from gateway.server.app_keys import DB, IDS, KEYRING
from gateway.server.http.rate_limits import LIMITS
from gateway.server.installation import WEBHOOK_RULES
from outbox.queue.log.chart_figures import total
from outbox.queue.log.delivery_types import COUNTED, shown
from outbox.sending.request import SECRET_BYTES, new_secret

LIST = "/console/webhooks"


async def index(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """List all webhooks with their health; htmx polls the table."""
    rows = await request.app[DB].read(overviews.with_health, visitor.actor)
    deleted = await request.app[DB].read(webhooks.all_deleted, visitor.actor)
    context = {
        "rows": rows, "deleted": deleted, "total": len(EVENT_NAMES), "cap": COUNTED,
        "state_of": display.webhook_state,
        "most": request.app[WEBHOOK_RULES].most,
    }  # fmt: skip
    return polling.live(request, visitor, "webhooks.html", "parts/webhook_rows.html", context)


async def new(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show an empty form; with `kind=operational`, that of an operational webhook."""
    listens = request.query.get("kind") == webhook_form.OPERATIONAL
    every = settings.names_of(True) if listens else ()
    typed = {**webhook_form.EMPTY, "listens": listens, "events": every}
    return webhook_form.page(request, visitor, None, typed)


async def create(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Create a webhook; its page then shows the secret once."""
    app = request.app
    typed = webhook_form.typed_in(form)
    try:
        draft = webhook_form.judged(request, typed)
        secret = new_secret(app[IDS].token(SECRET_BYTES))
        most = app[WEBHOOK_RULES].most
        if typed["snapshot"]:
            job = await app[DB].write(
                recoveries.create_with_snapshot, visitor.actor, draft, USUAL_RATE, secret=secret,
                ring=app[KEYRING], most=most,
            )  # fmt: skip
            tell(request, job)
            webhook_id = job.webhook_id
        else:
            webhook_id = await app[DB].write(
                webhooks.create, visitor.actor, draft, secret=secret, ring=app[KEYRING], most=most
            )
    except Refusal as refusal:
        return webhook_form.page(request, visitor, None, typed, refusal)
    await reveal.later(request, visitor, webhook_id, secret)
    return pages.to(f"{LIST}/{webhook_id}", "created")


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show a webhook: state, health, settings, latest deliveries, and the secret of a new one."""
    webhook_id = pages.id_of(request)
    view = window(request)
    try:
        page = await request.app[DB].read(
            overviews.of_webhook, visitor.actor, webhook_id, view.steps,
            doctor.usual_schedule(request),
        )  # fmt: skip
    except Refusal as refusal:
        if refusal.code != "not_found":
            raise
        # Of a deleted one its log is left.
        await request.app[DB].read(webhooks.deleted, visitor.actor, webhook_id)
        return pages.to(f"{LIST}/{webhook_id}/deliveries")
    webhook, now = page.webhook, request.app[DB].clock.wall()
    secret = await reveal.now(request, visitor, webhook_id)
    twins: Sequence[Twin] = ()
    if "HX-Request" not in request.headers:
        twins = await request.app[DB].read(subscriptions.twins_of, visitor.actor, webhook_id)
    context: dict[str, Any] = {
        "webhook": webhook, "state": display.webhook_state(webhook), "health": page.health,
        "cap": COUNTED, "others": [
            name for name in settings.names_of(webhook.operational) if name not in webhook.events
        ],
        "state_of": lambda delivery: shown(delivery, webhook.state == "active"),
        "found": None, "attempt": None, "certified": None, "reason": "",
        "here": f"{LIST}/{webhook_id}", "twins": twins,
        "unmatched": request.query.get("done") == "saved_unmatched",
        "left_out": total(page.steps).filtered, "pending": page.pending,
        "board": view.board(page.steps, request[READER], page.since, webhook.created_at),
        "charts_open": "range" in request.query and "HX-Request" not in request.headers,
        "standing": page.standing, "retries": doctor.retries(page.schedule, now),
        "next_probe": None if page.next_probe is None else now + page.next_probe,
        "secret": secret, "programs": guide.with_secret(request, secret),
        "waiting": page.waiting, "waits": page.waits,
        "failed": page.failed, "next": page.next,
        "lines": page.lines, "lines_cap": LINES_COUNTED,
        "last_sequence": page.last_sequence, **webhook_form.settings(request, webhook),
    }  # fmt: skip
    return polling.live(request, visitor, "webhook.html", "parts/webhook_health.html", context)


async def edit_page(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the form with the current settings."""
    webhook = await request.app[DB].read(webhooks.one, visitor.actor, pages.id_of(request))
    stored, fault = webhook_form.kept(request, webhook)
    refusal = None if fault is None else Refusal("conflict", fault.message, faults=[fault])
    typed = webhook_form.typed_for(stored, request[READER].texts)
    return webhook_form.page(request, visitor, webhook, typed, refusal, status=200)


async def edit(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Save an edited webhook unless it has changed since the form was loaded."""
    webhook_id = pages.id_of(request)
    webhook = await request.app[DB].read(webhooks.one, visitor.actor, webhook_id)
    typed = webhook_form.typed_in(form, webhook)
    seen = form.text("version")
    try:
        draft = webhook_form.judged(request, typed, webhook_form.kept(request, webhook)[0])
        # No webhook has the version 0.
        version = (numbers.typed(seen, 1, webhook.version) or 0) if seen else webhook.version
        changed = await subscriptions.change(
            request.app[DB], visitor.actor, webhook_id, version, draft, request.app[KEYRING],
            choice=typed["unmatched"],
        )  # fmt: skip
    except Refusal as refusal:
        if refusal.code == "conflict":
            raise
        return webhook_form.page(request, visitor, webhook, typed, refusal)
    if changed.cancelled:
        return pages.to(f"{LIST}/{webhook_id}", "saved_canceled", changed.cancelled)
    if changed.unmatched.count:
        return pages.to(f"{LIST}/{webhook_id}", "saved_unmatched", changed.unmatched.count)
    return pages.to(f"{LIST}/{webhook_id}", "saved")


async def unmatched_page(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Ask what to do with waiting deliveries that do not match the settings."""
    webhook, standing = await subscriptions.standing(
        request.app[DB], visitor.actor, pages.id_of(request)
    )
    return templates.render(
        request, visitor, "unmatched.html", {"webhook": webhook, "found": standing}
    )


async def cancel_unmatched(
    request: web.Request, visitor: SignedIn, form: Form
) -> web.StreamResponse:
    """Cancel waiting deliveries that do not match the settings."""
    webhook_id = pages.id_of(request)
    count = await subscriptions.cancel(request.app[DB], visitor.actor, webhook_id)
    return pages.to(f"{LIST}/{webhook_id}", "unmatched_canceled", count)


async def pause(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Pause a webhook; its waiting deliveries are parked."""
    webhook_id = pages.id_of(request)
    done = await request.app[DB].write(webhooks.pause, visitor.actor, webhook_id)
    return pages.to(f"{LIST}/{webhook_id}", "paused" if done else "")


async def activate_page(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Ask what to do with the parked deliveries."""
    webhook, parked, records = await request.app[DB].read(
        webhooks.parked, visitor.actor, pages.id_of(request)
    )
    # What is dropped cannot be had back at a click, so nobody drops it by one.
    context = {
        "webhook": webhook, "parked": parked, "cap": webhooks.WAITING_COUNTED, "chosen": "all",
        "counts": {"all": parked, "newest": records, "none": 0},
        "more": parked >= webhooks.WAITING_COUNTED,
    }  # fmt: skip
    return templates.render(request, visitor, "activate.html", context)


async def activate(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Activate a webhook; `parked` selects what is sent: none, newest or all.

    Without the field it is none, as programs know it; the form always has it.
    """
    webhook_id = pages.id_of(request)
    await webhooks.activate(
        request.app[DB], visitor.actor, webhook_id, form.text("parked") or "none"
    )
    return pages.to(f"{LIST}/{webhook_id}", "activated")


async def delete_page(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Ask for confirmation before a webhook is deleted."""
    webhook, waiting, sending = await request.app[DB].read(
        webhooks.to_delete, visitor.actor, pages.id_of(request)
    )
    context = {
        "webhook": webhook,
        "waiting": waiting,
        "cap": webhooks.WAITING_COUNTED,
        "sending": sending,
        "days": request.app[WEBHOOK_RULES].deliveries_days,
    }
    return templates.render(request, visitor, "delete.html", context)


async def delete(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Delete a webhook; its waiting deliveries are cancelled."""
    webhook_id = pages.id_of(request)
    removed = await webhooks.delete(request.app[DB], visitor.actor, webhook_id)
    return pages.to(LIST, "deleted", removed.cancelled if removed else 0)


async def test(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Send a sample of an event to this webhook only."""
    webhook_id = pages.id_of(request)
    request.app[LIMITS].test(visitor.actor.owner_id)
    held = await request.app[DB].write(webhooks.test, visitor.actor, webhook_id, form.text("event"))
    return pages.to(f"{LIST}/{webhook_id}", f"tested_{held.reason}" if held else "tested")
