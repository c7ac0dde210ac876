"""Secrets that a page shows once; the session stores them sealed until the next page."""

import json

from aiohttp import web

from gateway.console.layout.guard import SignedIn
from gateway.domain.accounts import sessions
from gateway.server.app_keys import DB, KEYRING
from outbox.webhooks.secrets import SealBroken


async def later(request: web.Request, visitor: SignedIn, subject: str, secret: str) -> None:
    """Store `secret` for the next page about `subject`."""
    if visitor.session is not None:
        plain = json.dumps([subject, secret]).encode()
        sealed = request.app[KEYRING].seal(plain, visitor.session.id)
        await request.app[DB].write(sessions.keep_reveal, visitor.session.id, sealed)


async def now(request: web.Request, visitor: SignedIn, subject: str) -> str | None:
    """Return the stored secret for this page and delete it."""
    if visitor.session is None or not visitor.session.reveals or request.method != "GET":
        return None
    if "HX-Request" in request.headers:
        return None
    sealed = await request.app[DB].read(sessions.reveal, visitor.session.id)
    if sealed is None:
        return None
    try:
        secret_subject, secret = json.loads(request.app[KEYRING].open(sealed, visitor.session.id))
    except SealBroken:
        return None
    if secret_subject != subject:
        return None
    await request.app[DB].write(sessions.forget_reveal, visitor.session.id)
    return str(secret)
