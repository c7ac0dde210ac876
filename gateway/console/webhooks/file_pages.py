"""The pages of webhooks as a file: export, import, the plan to confirm, and the new secrets."""

import re
from collections.abc import Sequence
from urllib.parse import quote

from aiohttp import web
from msgspec import json

from gateway.console.layout import error_pages, pages, reveal, templates, wording
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.domain.webhooks import file_plan, file_text
from gateway.domain.webhooks.file_plan import Created, Plan, Tools, Wanted
from gateway.records.errors import Fault, Refusal
from gateway.server.app_keys import DB, GUARD, IDS, KEYRING
from gateway.server.http.multipart import Upload
from gateway.server.installation import WEBHOOK_RULES
from outbox.sending.request import SECRET_BYTES, new_secret

LIST = "/console/webhooks"
PATH = f"{LIST}/import"
MOST_BYTES = 32_768
MOST_ENCODED = 60_000
"""The page of the plan sends the file again, in a form of limited size."""
SUBJECT = "webhook-file"
FORM = ("validation_error", "conflict")
_LINE = re.compile(r"line ([0-9]+), ", re.ASCII)


async def export(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Send the file of all webhooks, without secrets."""
    text = await request.app[DB].read(file_plan.export, visitor.actor, request.app[KEYRING])
    return web.Response(
        text=text,
        content_type="application/toml",
        headers={"Content-Disposition": 'attachment; filename="webhooks.toml"'},
    )


async def new(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the form that takes a file."""
    return _form(request, visitor)


async def upload(request: web.Request, visitor: SignedIn, form: Upload) -> web.StreamResponse:
    """Show what a file would change; change nothing."""
    content = b"".join([piece async for piece in form.pieces])
    prune = form.fields.get("prune") == "1"
    try:
        text = content.decode().replace("\r\n", "\n")
        return await _plan(request, visitor, text, prune)
    except UnicodeDecodeError:
        refusal = Refusal("validation_error", "webhook_file.not_utf8")
    except Refusal as refused:
        if refused.code not in FORM:
            raise
        refusal = refused
    return _form(request, visitor, refusal)


async def apply(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Do what the plan has shown: all of it or nothing."""
    app = request.app
    text = form.text("secret_file").replace("\r\n", "\n")
    prune = form.text("prune") == "1"
    try:
        wanted = Wanted(text, file_text.read(text), prune)
        secrets = [new_secret(app[IDS].token(SECRET_BYTES)) for _ in wanted.entries]
        applied = await app[DB].write(
            file_plan.apply, visitor.actor, wanted, _tools(request), secrets, form.text("plan")
        )
    except Refusal as refusal:
        if refusal.message == file_plan.STALE:
            return await _plan(request, visitor, text, prune, stale=True)
        if refusal.code not in FORM:
            raise
        return _form(request, visitor, refusal)
    if applied.created:
        await reveal.later(request, visitor, SUBJECT, json.encode(applied.created).decode())
    await file_plan.finish(app[DB], visitor.actor, applied)
    return pages.to(f"{PATH}/made" if applied.created else LIST, "applied")


async def made(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the secrets of new webhooks, once."""
    secrets = await reveal.now(request, visitor, SUBJECT)
    if secrets is None:
        return pages.to(LIST)
    context = {"created": json.decode(secrets, type=list[Created])}
    return templates.render(request, visitor, "webhook_file_made.html", context)


def _tools(request: web.Request) -> Tools:
    app = request.app
    return Tools(app[GUARD].rules, app[KEYRING], app[WEBHOOK_RULES].most)


async def _plan(
    request: web.Request, visitor: SignedIn, text: str, prune: bool, *, stale: bool = False
) -> web.StreamResponse:
    """Show a plan. Raises validation_error."""
    if len(quote(text)) > MOST_ENCODED:
        raise Refusal("validation_error", "webhook_file.too_large")
    wanted = Wanted(text, file_text.read(text), prune)
    plan: Plan = await request.app[DB].read(file_plan.plan, visitor.actor, wanted, _tools(request))
    context = {"plan": plan, "text": text, "prune": prune, "stale": stale}
    status = 409 if stale else 200
    return templates.render(request, visitor, "webhook_file_plan.html", context, status=status)


def _form(
    request: web.Request, visitor: SignedIn, refusal: Refusal | None = None
) -> web.StreamResponse:
    texts = request[READER].texts
    faults: Sequence[Fault] = refusal.faults if refusal else ()
    told = [
        (_LINE.sub(rf"{texts('import.line')} \1, ", fault.field), wording.said(texts, fault))
        for fault in faults
    ]
    context = {
        "faults": told,
        "kilobytes": MOST_BYTES // 1024,
        "refusal": wording.refused(texts, refusal) if refusal and not faults else "",
    }
    status = 200 if refusal is None else error_pages.status_of(refusal)
    return templates.render(request, visitor, "webhook_file.html", context, status=status)
