"""The pages of webhooks: list, create, edit, pause, activate, delete, test."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from gateway.console import display, doctor, pages, reveal
from gateway.console.boards import Window, window
from gateway.console.forms import Form
from gateway.console.guard import Visitor
from gateway.domain.catalogue import EVENT_NAMES
from gateway.domain.webhooks import pings, webhooks
from gateway.records.access import Actor
from gateway.records.errors import Fault, Refusal
from gateway.server.keys import CONFIG, DB, GUARD, IDS, KEYRING, LIMITS
from outbox.database.transaction import Tx
from outbox.queue import log, parking, series
from outbox.queue.series import Figures, Pending
from outbox.sending.request import MOST_CUSTOM, SECRET_BYTES, Header, new_secret
from outbox.webhooks import Draft, Webhook, open_headers, rotation

LIST = "/console/webhooks"
COUNTED = 100_000
"""The confirmation pages count deliveries up to this number."""
EMPTY: Mapping[str, Any] = {
    "url": "",
    "events": (),
    "description": "",
    "timeout": "",
    "headers": "",
}


def groups() -> Mapping[str, Sequence[str]]:
    """Return the events of the catalogue, grouped by record type."""
    found: dict[str, list[str]] = {}
    for name in EVENT_NAMES:
        found.setdefault(name.partition(".")[0], []).append(name)
    return found


async def index(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """List all webhooks with their health; htmx polls the table."""
    rows = await request.app[DB].read(_with_health, visitor.actor)
    context = {
        "rows": rows, "total": len(EVENT_NAMES), "cap": log.CAP, "state_of": display.webhook_state,
        "most": request.app[CONFIG].limits.webhooks_per_owner,
    }  # fmt: skip
    return pages.live(request, visitor, "webhooks.html", "parts/webhook_rows.html", context)


async def new(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """Show an empty form."""
    return _form(request, visitor, None, EMPTY)


async def create(request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
    """Create a webhook; its page then shows the secret once."""
    app = request.app
    typed = _typed(form)
    try:
        draft = _judged(request, typed)
        secret = new_secret(app[IDS].token(SECRET_BYTES))
        webhook_id = await app[DB].write(
            webhooks.create, visitor.actor, draft, secret=secret, ring=app[KEYRING],
            most=app[CONFIG].limits.webhooks_per_owner,
        )  # fmt: skip
    except Refusal as refusal:
        return _form(request, visitor, None, typed, refusal)
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
        "cap": log.CAP, "groups": groups(), "own_timeout": _own_timeout(request),
        "headers": open_headers(webhook.headers, request.app[KEYRING], webhook_id),
        "state_of": lambda delivery: display.delivery_state(delivery, webhook.state == "active"),
        "found": None, "attempt": None,
    }  # fmt: skip
    context["board"] = asked.board(steps, visitor.actor.zone, since, webhook.created_at)
    context |= {"pending": pending, "standing": standing, "here": f"{LIST}/{webhook_id}"}
    schedule = await request.app[DB].read(
        pings.schedule_of, webhook_id, doctor.usual_schedule(request)
    )
    context["retries"] = doctor.retries(schedule, request.app[DB].clock.wall())
    context["secret"] = await reveal.now(request, visitor, webhook_id)
    return pages.live(request, visitor, "webhook.html", "parts/webhook_health.html", context)


async def edit_page(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """Show the form with the current settings."""
    webhook = await request.app[DB].read(webhooks.one, visitor.actor, pages.id_of(request))
    kept = open_headers(webhook.headers, request.app[KEYRING], webhook.id)
    typed = {
        "url": webhook.url, "events": webhook.events, "description": webhook.description or "",
        "timeout": str(webhook.timeout_ms // 1000) if webhook.timeout_ms else "",
        "headers": webhooks.shown(kept),
    }  # fmt: skip
    return _form(request, visitor, webhook, typed)


async def edit(request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
    """Save an edited webhook unless it has changed since the form was loaded."""
    webhook_id = pages.id_of(request)
    webhook = await request.app[DB].read(webhooks.one, visitor.actor, webhook_id)
    typed = _typed(form)
    seen = form.text("version")
    kept = open_headers(webhook.headers, request.app[KEYRING], webhook_id)
    try:
        draft = _judged(request, typed, kept)
        version = int(seen) if seen.isascii() and seen.isdigit() else webhook.version
        await request.app[DB].write(
            webhooks.change, visitor.actor, webhook_id, version, draft, request.app[KEYRING]
        )
    except Refusal as refusal:
        if refusal.code == "conflict":
            raise
        return _form(request, visitor, webhook, typed, refusal)
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
    return pages.render(request, visitor, "activate.html", context)


async def activate(request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
    """Activate a webhook; `parked` selects what is sent: none (the default), newest or all."""
    webhook_id = pages.id_of(request)
    await request.app[DB].read(webhooks.one, visitor.actor, webhook_id)
    wanted = form.text("parked") or "none"
    choice = next((choice for choice in parking.CHOICES if choice == wanted), None)
    if choice is None:
        raise Refusal("validation_error", "parked must be none, newest or all.")
    visitor.actor.must("write")
    await parking.activate(request.app[DB], webhook_id, choice)
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
    return pages.render(request, visitor, "delete.html", context)


async def delete(request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
    """Delete a webhook; its waiting deliveries are cancelled."""
    webhook_id = pages.id_of(request)
    await request.app[DB].read(webhooks.one, visitor.actor, webhook_id)
    visitor.actor.must("write")
    await parking.remove(request.app[DB], webhook_id)
    return pages.to(LIST, "deleted")


async def test(request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
    """Send a sample of an event to this webhook only."""
    webhook_id = pages.id_of(request)
    request.app[LIMITS].test(visitor.actor.owner_id)
    await request.app[DB].write(webhooks.test, visitor.actor, webhook_id, form.text("event"))
    return pages.to(f"{LIST}/{webhook_id}", "tested")


async def _with_health(tx: Tx, actor: Actor) -> list[tuple[Webhook, log.Health]]:
    return [
        (webhook, await log.health(tx, webhook.id)) for webhook in await webhooks.listed(tx, actor)
    ]


async def _one_with_figures(
    tx: Tx, actor: Actor, webhook_id: str, asked: Window
) -> tuple[Webhook, log.Health, list[Figures], Pending, int, rotation.Standing]:
    webhook = await webhooks.one(tx, actor, webhook_id)
    health = await log.health(tx, webhook.id)
    chosen = asked.range
    steps = await series.by_step(tx, "webhook", webhook.id, asked.start, chosen.step, chosen.count)
    pending = await series.pending(tx, "webhook", webhook.id, 1)
    standing = await rotation.standing(tx, webhook.id)
    return webhook, health, steps, pending[webhook.id], await series.since(tx), standing


async def _one_with_parked(tx: Tx, actor: Actor, webhook_id: str) -> tuple[Webhook, int]:
    webhook = await webhooks.one(tx, actor, webhook_id)
    return webhook, await parking.count(tx, webhook_id, COUNTED)


def _typed(form: Form) -> Mapping[str, Any]:
    return {
        "url": form.text("url"), "events": tuple(form.all("events")),
        "description": form.text("description"), "timeout": form.text("timeout"),
        "headers": form.text("headers"),
    }  # fmt: skip


def _judged(request: web.Request, typed: Mapping[str, Any], kept: Sequence[Header] = ()) -> Draft:
    timeout, unread = typed["timeout"].strip(), list[Fault]()
    if timeout and not re.fullmatch("[0-9]{1,4}", timeout):
        unread.append(Fault("timeout", "out_of_range", webhooks.TIMEOUT))
        timeout = ""
    read = {"timeout": int(timeout) if timeout else None, "headers": _headers(typed, unread)}
    rules = request.app[GUARD].rules
    return webhooks.judge(rules=rules, kept=kept, unread=unread, **{**typed, **read})


def _headers(typed: Mapping[str, Any], unread: list[Fault]) -> list[Header]:
    """Return the headers of the text, one in each line; add to `unread` when a line is none."""
    found: list[Header] = []
    for line in filter(None, map(str.strip, typed["headers"].splitlines())):
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon:
            message = "Write each header on a line of its own, as Name: value."
            unread.append(Fault("headers", "invalid", message))
            return []
        found.append((name, value))
    return found


def _own_timeout(request: web.Request) -> str:
    return f"{request.app[CONFIG].delivery.total_seconds:g}"


def _form(
    request: web.Request,
    visitor: Visitor,
    webhook: Webhook | None,
    typed: Mapping[str, Any],
    refusal: Refusal | None = None,
) -> web.Response:
    context = {
        "webhook": webhook, "typed": typed, "groups": groups(),
        "faults": {fault.field: fault.message for fault in refusal.faults} if refusal else {},
        "refusal": refusal.message if refusal and not refusal.faults else "",
        "least": webhooks.FASTEST, "most": webhooks.SLOWEST, "own": _own_timeout(request),
        "most_headers": MOST_CUSTOM,
        "http": request.app[CONFIG].egress.allow_http,
    }  # fmt: skip
    status = pages.status_of(refusal) if refusal else 200
    return pages.render(request, visitor, "webhook_form.html", context, status=status)
