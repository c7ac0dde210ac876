"""Starts the session of somebody who has signed in, and leads to where they wanted to go."""

from aiohttp import web

from gateway.console.account import devices, proofs
from gateway.console.layout import guard, kept_forms, pages
from gateway.console.layout.guard import SignedIn
from gateway.console.layout.kept_forms import Kept
from gateway.domain.accounts import sessions
from gateway.server.app_keys import DB
from gateway.server.installation import ACCOUNT_RULES, SITE

HOME = "/console"


async def welcome(
    request: web.Request, visitor: SignedIn, user_id: str, where: str, kept: Kept | None = None,
    *, created: bool = False,
) -> web.StreamResponse:  # fmt: skip
    """Start a session; redirect to `where`, or to the form that was kept.

    The account gets a mail about a browser that is new to it, unless it was `created` there.
    """
    told = request.app[SITE].sends_mail and not created
    new = told and not devices.is_known(request, user_id)
    token = await guard.sign_in(
        request, visitor, user_id, proofs.facts_of(request) if new else None
    )
    response = pages.to(where)
    if kept is not None and not kept_forms.belongs(kept, user_id):
        response = pages.to(HOME, "form_dropped")
    elif kept is not None:
        session = await request.app[DB].read(sessions.find, token)
        await kept_forms.later(request, SignedIn(token, False, session), kept)
        response = pages.to(kept.page, "form_back")
    guard.give_cookie(request, response, token, request.app[ACCOUNT_RULES].session_seconds)
    devices.remember(request, response, user_id)
    return response


def inside(where: str) -> str:
    """Return `where` if it is an address of this console, else the first page."""
    return guard.inside(where) or HOME
