"""Starts the session of somebody who has signed in, and leads to where they wanted to go.

It tells the browsers in which an account has signed in before from new ones. A browser keeps a
sealed cookie with the marks of its accounts, also when it signs out; the database keeps nothing.
Without the cookie, also in a private window, a browser is new.
"""

import base64
import binascii

from aiohttp import web
from msgspec import DecodeError, ValidationError, json

from gateway.console.account import proofs
from gateway.console.layout import guard, kept_forms, pages
from gateway.console.layout.guard import SignedIn
from gateway.console.layout.kept_forms import Kept
from gateway.domain.accounts import sessions
from gateway.domain.accounts.users import CheckedAccount
from gateway.records.errors import Refusal
from gateway.server.app_keys import DB, KEYRING
from gateway.server.installation import ACCOUNT_RULES, SITE
from outbox.durations import DAY, SECOND
from outbox.webhooks.secrets import SealBroken

HOME = "/console"


async def welcome(
    request: web.Request, visitor: SignedIn, account: CheckedAccount, where: str,
    kept_form: Kept | None = None, *, created: bool = False,
) -> web.StreamResponse:  # fmt: skip
    """Start a session; redirect to `where`, or to the form that was kept.

    The account gets a mail about a browser that is new to it, unless it was `created` there. One
    that changed since its password was checked has to sign in again.
    """
    user_id = account.id
    told = request.app[SITE].sends_mail and not created
    new = told and not is_known_browser(request, user_id)
    notice = proofs.facts_of(request) if new else None
    try:
        token = await guard.sign_in(request, visitor, account, notice)
    except Refusal as refusal:
        if refusal.code != "unauthenticated":
            raise
        return pages.to("/console/sign-in", "sign_in_again")
    response = pages.to(where)
    if kept_form is not None and not kept_forms.belongs(kept_form, user_id):
        response = pages.to(HOME, "form_dropped")
    elif kept_form is not None:
        session = await request.app[DB].read(sessions.find, token)
        await kept_forms.later(request, SignedIn(token, False, session), kept_form)
        response = pages.to(kept_form.page, "form_back")
    guard.give_cookie(request, response, token, request.app[ACCOUNT_RULES].session_seconds)
    remember_browser(request, response, user_id)
    return response


def inside(where: str) -> str:
    """Return `where` if it is an address of this console, else the first page."""
    return guard.inside(where) or HOME


LASTS = 400 * DAY
"""The longest time that browsers keep a cookie, counted from the last sign-in."""
MOST = 10
"""Accounts that one browser is known to."""
_PATH = "/console/sign-in"
"""Both steps of a sign-in are below it; no other request carries the cookie."""
_BOUND = "browser_accounts"


def is_known_browser(request: web.Request, user_id: str) -> bool:
    """Return whether the account has signed in before in the browser of this request."""
    return guard.mark_of(user_id) in _marks(request)


def remember_browser(request: web.Request, response: web.StreamResponse, user_id: str) -> None:
    """Let the browser of this request be known to the account."""
    mark = guard.mark_of(user_id)
    marks = [mark, *(one for one in _marks(request) if one != mark)][:MOST]
    sealed = request.app[KEYRING].seal(json.encode(marks), _BOUND)
    secure = guard.origin_of(request).startswith("https:")
    response.set_cookie(
        _name(request), base64.urlsafe_b64encode(sealed).decode(), max_age=LASTS // SECOND,
        path=_PATH, httponly=True, samesite="Lax", secure=secure,
    )  # fmt: skip


def _marks(request: web.Request) -> list[str]:
    try:
        sealed = base64.urlsafe_b64decode(request.cookies.get(_name(request), "").encode("ascii"))
        return json.decode(request.app[KEYRING].open(sealed, _BOUND), type=list[str])
    except (UnicodeEncodeError, binascii.Error, SealBroken, DecodeError, ValidationError):
        return []


def _name(request: web.Request) -> str:
    secure = guard.origin_of(request).startswith("https:")
    return "__Secure-carteiro-device" if secure else "carteiro-device"
