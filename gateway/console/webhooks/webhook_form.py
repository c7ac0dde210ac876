"""The form of a webhook: what was typed into it, what it says, and what it would do."""

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from gateway.console.layout import error_pages, pages, templates, typed_numbers, wording
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.console.webhooks import doctor
from gateway.domain.webhooks import (
    oauth2,
    schedules,
    subscriptions,
    typed_conditions,
    webhook_limits,
    webhooks,
)
from gateway.domain.webhooks import settings as settings_of
from gateway.domain.webhooks.settings import SETTINGS, Setting, Stored, Typed
from gateway.domain.webhooks.subscriptions import Found
from gateway.records.errors import Fault, Refusal
from gateway.records.values.numbers import show_quantity
from gateway.server.app_keys import DB, DOCTOR, GUARD, KEYRING
from gateway.server.installation import WEBHOOK_RULES
from gateway.texts import Texts
from outbox.events.cloud_events import MODES
from outbox.queue.state.policy import Schedule
from outbox.sending.client_certificates import ENDS_SOON
from outbox.sending.request import MASK, MOST_CUSTOM
from outbox.webhooks import Draft, Webhook
from outbox.webhooks.conditions import MOST

EMPTY: Mapping[str, Any] = {
    **settings_of.NOTHING, "listens": False, "snapshot": False, "unmatched": "",
}  # fmt: skip
OPERATIONAL = "operational"
IN_SIGHT = frozenset({"url", "events", "description", "snapshot"})
FOLDED = {name: typed for name, typed in settings_of.NOTHING.items() if name not in IN_SIGHT}
"""The form folds these options away, unless one is set or wrong."""


def groups(listens: bool = False) -> Mapping[str, Sequence[str]]:
    """Return the events that a webhook can get, by record; `listens`: an operational one."""
    groups: dict[str, list[str]] = {}
    for name in settings_of.names_of(listens):
        groups.setdefault(name.partition(".")[0], []).append(name)
    return groups


def typed_in(form: Form, webhook: Webhook | None = None) -> Mapping[str, Any]:
    """Return what was typed into the form of a new webhook, or of `webhook`, which has a kind."""
    listens = form.text("kind") == OPERATIONAL if webhook is None else webhook.operational
    return {
        **{one.name: _typed(form, one) for one in SETTINGS},
        "listens": listens,
        "format": form.text("format").replace(settings_of.CONTRACT, ""),
        "snapshot": form.text("snapshot") == "1",
        "unmatched": form.text("unmatched"),
    }


def _typed(form: Form, setting: Setting) -> Typed:
    if setting.kind == "words":
        return tuple(dict.fromkeys(form.all(setting.name)))
    if setting.kind == "parts":
        names = (*oauth2.PARTS, oauth2.PARAMETERS)
        return oauth2.typed({name: form.text(f"{setting.name}.{name}") for name in names})
    text = form.text(setting.name)
    return text == "1" if setting.kind == "flag" else text


def typed_for(stored: Stored, texts: Texts) -> Mapping[str, Any]:
    """Return the settings of a webhook as they would be typed."""
    rate = stored.webhook.rate
    return {
        **settings_of.typed_of(stored),
        "listens": stored.webhook.operational,
        "unmatched": "",
        "rate": "" if rate is None else typed_numbers.written(show_quantity(rate), texts),
    }


def judged(request: web.Request, typed: Mapping[str, Any], stored: Stored | None = None) -> Draft:
    """Return the settings that were typed. Raise validation_error with every fault."""
    plain = {"rate": typed_numbers.plain(typed["rate"], request[READER].texts)}
    return settings_of.judge(
        {**typed, **plain}, rules=request.app[GUARD].rules, listens=typed["listens"], stored=stored
    )


def kept(request: web.Request, webhook: Webhook) -> tuple[Stored, Fault | None]:
    """Return a webhook with its secrets, and why one of them cannot be decrypted."""
    stored = webhooks.stored(webhook, request.app[KEYRING])
    if (reason := stored.broken.get("headers")) is not None:
        message = request[READER].texts("webhook.headers_unreadable", reason=reason)
        return stored, Fault("headers", "unreadable", message)
    if "certificate" in stored.broken:
        return stored, Fault("certificate", "unreadable", webhook_limits.UNREADABLE)
    if "oauth2" in stored.broken:
        return stored, Fault("oauth2", "unreadable", oauth2.UNREADABLE)
    return stored, None


def own_timeout(request: web.Request) -> str:
    """Return the seconds of the installation's timeout."""
    return f"{request.app[DOCTOR].settings.timeout:g}"


def page(
    request: web.Request,
    visitor: SignedIn,
    webhook: Webhook | None,
    typed: Mapping[str, Any],
    refusal: Refusal | None = None,
    outlook: Mapping[str, Any] | None = None,
    status: int | None = None,
) -> web.Response:
    """Show the form with what was typed, the faults of it, and what it would do."""
    if outlook is None and (typed["conditions"] or typed["schedule"]):
        outlook = _outlook(request, typed)
    texts = request[READER].texts
    faults = wording.by_field(texts, refusal.faults) if refusal else {}
    if typed["certificate"].strip() not in ("", MASK):
        # A page never repeats a key.
        faults.setdefault("certificate", texts("brakes.certificate_again"))
    parts = oauth2.parts_of(typed["oauth2"])
    if parts["clientSecret"] not in ("", MASK):
        faults.setdefault("oauth2.clientSecret", texts("oauth2.secret_again"))
        parts["clientSecret"] = ""
    below = f"oauth2.{oauth2.PREFIX}"
    if wrong := [said for field, said in faults.items() if field.startswith(below)]:
        faults.setdefault(f"oauth2.{oauth2.PARAMETERS}", " ".join(dict.fromkeys(wrong)))
    context = {
        "webhook": webhook, "typed": typed, "groups": groups(typed["listens"]),
        "faults": faults,
        "refusal": wording.refused(texts, refusal) if refusal and not refusal.faults else "",
        "opened": not IN_SIGHT.issuperset(faults)
        or any(typed[name] != nothing for name, nothing in FOLDED.items()),
        "least": settings_of.FASTEST, "most": settings_of.SLOWEST, "own": own_timeout(request),
        "most_headers": MOST_CUSTOM, "most_conditions": MOST, "most_retries": schedules.MOST,
        "most_at_once": webhook_limits.MOST_AT_ONCE, "highest_rate": webhook_limits.HIGHEST_RATE,
        "oauth2": parts, "ways": oauth2.WAYS,
        "proxies": sorted(request.app[GUARD].rules.proxies),
        "formats": (settings_of.CONTRACT, *MODES),
        "http": request.app[GUARD].rules.allow_http, "outlook": outlook,
        "record_fields": {
            noun: [typed_conditions.one_line(one) for one in choices]
            for noun, choices in typed_conditions.choices().items()
        },
        "usual": schedules.written(doctor.usual_schedule(request).waits),
    }  # fmt: skip
    if status is None:
        status = error_pages.status_of(refusal) if refusal else 200
    return templates.render(request, visitor, "webhook_form.html", context, status=status)


async def preview_new(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Show what the options in the form of a new webhook would do; save nothing."""
    return _preview(request, visitor, None, form)


async def preview(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Show what the options in the form of a webhook would do; save nothing."""
    db, actor = request.app[DB], visitor.actor
    webhook, waits = await db.read(subscriptions.has_waiting, actor, pages.id_of(request))
    unmatched: Found | None = None
    if waits:
        typed = typed_in(form, webhook)
        try:
            draft = judged(request, typed, kept(request, webhook)[0])
            unmatched = await subscriptions.look(db, actor, webhook, draft)
        except Refusal:
            # The form shows its faults when it is sent.
            unmatched = None
    return _preview(request, visitor, webhook, form, unmatched)


def settings(request: web.Request, webhook: Webhook) -> Mapping[str, Any]:
    """Return what the page of a webhook tells about its options."""
    apps = {app.id: app.name for app in request.app[WEBHOOK_RULES].apps}
    texts = request[READER].texts
    stored = kept(request, webhook)[0]
    return {
        "app_name": apps.get(webhook.app or "", webhook.app),
        "headers": stored.headers or (),
        "oauth2": stored.oauth2,
        "rate": webhook.rate and texts.number(webhook.rate / 1000, 3),
        "allowed_rate": webhook.allowed_rate and texts.number(webhook.allowed_rate / 1000, 3),
        "certificate_ends": _ends_soon(request, webhook),
        "proxy_gone": webhook.proxy is not None
        and webhook.proxy not in request.app[GUARD].rules.proxies,
        "own_timeout": own_timeout(request),
        "own_schedule": schedules.of_column(webhook.schedule),
        "asked": [typed_conditions.one_line(one) for one in webhook.conditions or ()],
        "impossible": [
            trial.event
            for trial in typed_conditions.tried(webhook.conditions or (), webhook.events, 0)
            if trial.impossible
        ],
    }


def _ends_soon(request: web.Request, webhook: Webhook) -> str:
    """Return `expired` or `soon` for a client certificate that ends; empty for any other."""
    if webhook.certificate_until is None:
        return ""
    rest = webhook.certificate_until - request.app[DB].clock.wall()
    return "expired" if rest <= 0 else "soon" if rest < ENDS_SOON else ""


def _preview(
    request: web.Request,
    visitor: SignedIn,
    webhook: Webhook | None,
    form: Form,
    unmatched: Found | None = None,
) -> web.Response:
    typed = typed_in(form, webhook)
    outlook = {**_outlook(request, typed), "unmatched": unmatched}
    if "HX-Request" in request.headers:
        return templates.render(
            request, visitor, "parts/webhook_outlook.html", {"outlook": outlook}
        )
    return page(request, visitor, webhook, typed, outlook=outlook)


def _outlook(request: web.Request, typed: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the conditions make of samples of the events, and when retries would follow."""
    now = request.app[DB].clock.wall()
    texts = request[READER].texts
    faults, trials, waits = list[str](), list[typed_conditions.Trial](), None
    try:
        filter_conditions = typed_conditions.read(typed["conditions"], typed["events"])
        trials += typed_conditions.tried(filter_conditions, typed["events"], now)
    except ValueError as wrong:
        faults.append(wording.said(texts, Fault("conditions", "invalid", str(wrong))))
    try:
        waits = schedules.read(typed["schedule"])
    except ValueError as wrong:
        faults.append(wording.said(texts, Fault("schedule", "invalid", str(wrong))))
    schedule = doctor.usual_schedule(request) if waits is None else Schedule(waits)
    return {
        "faults": faults,
        "trials": trials,
        "retries": doctor.retries(schedule, now),
        "unmatched": None,
    }
