"""The page of a store's payment secret: shown once, replaced in two steps."""

from aiohttp import web

from gateway.console.layout import pages, reveal, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.domain.storefront.payments import payment_secrets
from gateway.server.app_keys import DB, IDS, KEYRING
from outbox.sending.request import SECRET_BYTES, new_secret
from outbox.webhooks.secret_rotation import OVERLAP

HOUR = 3_600_000_000


def page_of(store_id: str) -> str:
    """Return the path of the page."""
    return f"/console/stores/{store_id}/payment-secret"


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the step that comes next, and a new secret once."""
    store_id, ring = pages.id_of(request), request.app[KEYRING]
    store, standing = await request.app[DB].read(
        payment_secrets.standing, visitor.actor, store_id, ring
    )
    secret = await reveal.now(request, visitor, page_of(store_id))
    context = {
        "store": store, "standing": standing, "secret": secret, "hours": OVERLAP // HOUR,
        "callback": f"/api/payments/callback/{store_id}",
    }  # fmt: skip
    return templates.render(request, visitor, "payment_secret.html", context)


async def stage(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Create the secret, or stage another one; the page then shows it once."""
    store_id = pages.id_of(request)
    secret = new_secret(request.app[IDS].token(SECRET_BYTES))
    staged = await request.app[DB].write(
        payment_secrets.stage, visitor.actor, store_id, secret, request.app[KEYRING]
    )
    await reveal.later(request, visitor, page_of(store_id), secret)
    return pages.to(page_of(store_id), "staged" if staged else "payment_secret")


async def activate(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Make the staged secret the current one."""
    store_id = pages.id_of(request)
    await request.app[DB].write(payment_secrets.activate, visitor.actor, store_id)
    return pages.to(page_of(store_id), "rotated")


async def cancel(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Delete the staged secret; the current one stays."""
    store_id = pages.id_of(request)
    await request.app[DB].write(payment_secrets.cancel, visitor.actor, store_id)
    return pages.to(page_of(store_id), "unstaged")
