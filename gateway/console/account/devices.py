"""Tells the browsers in which an account has signed in before from new ones.

A browser keeps a sealed cookie with the marks of its accounts, also when it signs out; the database
keeps nothing. Without the cookie, also in a private window, a browser is new.
"""

import base64
import binascii

from aiohttp import web
from msgspec import DecodeError, ValidationError, json

from gateway.console.layout import guard
from gateway.server.app_keys import KEYRING
from outbox.durations import DAY, SECOND
from outbox.webhooks.secrets import SealBroken

LASTS = 400 * DAY
"""The longest time that browsers keep a cookie, counted from the last sign-in."""
MOST = 10
"""Accounts that one browser is known to."""
_PATH = "/console/sign-in"
"""Both steps of a sign-in are below it; no other request carries the cookie."""
_BOUND = "browser_accounts"


def is_known(request: web.Request, user_id: str) -> bool:
    """Return whether the account has signed in before in the browser of this request."""
    return guard.mark_of(user_id) in _marks(request)


def remember(request: web.Request, response: web.StreamResponse, user_id: str) -> None:
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
