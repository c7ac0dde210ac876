"""The page that replaces the signing secret of a webhook in two steps."""

from aiohttp import web

from gateway.console.layout import pages, reveal, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.webhooks import guide
from gateway.domain.webhooks import rotation
from gateway.server.app_keys import DB, IDS, KEYRING
from outbox.durations import HOUR
from outbox.sending.request import SECRET_BYTES, new_secret
from outbox.webhooks.secret_rotation import OVERLAP


def page_of(webhook_id: str) -> str:
    """Return the path of the page."""
    return f"/console/webhooks/{webhook_id}/rotate"


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the step that comes next, and a new secret once."""
    webhook_id = pages.id_of(request)
    webhook, standing = await request.app[DB].read(rotation.standing, visitor.actor, webhook_id)
    secret = await reveal.now(request, visitor, page_of(webhook_id))
    context = {
        "webhook": webhook, "standing": standing, "hours": OVERLAP // HOUR, "secret": secret,
        "programs": guide.with_secret(request, secret),
    }  # fmt: skip
    return templates.render(request, visitor, "rotate.html", context)


async def stage(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Stage a new secret; the page then shows it once."""
    webhook_id = pages.id_of(request)
    secret = new_secret(request.app[IDS].token(SECRET_BYTES))
    await request.app[DB].write(
        rotation.stage, visitor.actor, webhook_id, secret, request.app[KEYRING]
    )
    await reveal.later(request, visitor, page_of(webhook_id), secret)
    return pages.to(page_of(webhook_id), "staged")


async def activate(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Make the staged secret the current one."""
    webhook_id = pages.id_of(request)
    await request.app[DB].write(rotation.activate, visitor.actor, webhook_id, request.app[KEYRING])
    return pages.to(f"/console/webhooks/{webhook_id}", "rotated")


async def cancel(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Delete the staged secret; the current one stays."""
    webhook_id = pages.id_of(request)
    await request.app[DB].write(rotation.cancel, visitor.actor, webhook_id)
    return pages.to(f"/console/webhooks/{webhook_id}", "unstaged")
