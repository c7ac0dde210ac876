"""Keeps what was typed when a session ended before the form was sent, and shows the form again.

The sign-in page carries the fields in hidden inputs, so that nothing of a stranger is stored. After
the sign-in the new session keeps them sealed, until its next page shows the form filled in; the
person sends it. Nothing is kept of a form that another site sent, or another account filled in,
and never a secret.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from aiohttp import web
from msgspec import DecodeError, ValidationError, json

from gateway.console.layout import guard, reveal
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.refilling import refilled
from gateway.console.layout.templates import render
from gateway.records.errors import Refusal
from gateway.server.app_keys import DB
from outbox.durations import MINUTE

SECRET = re.compile(
    "password|secret|token(?!Url$)|headers|certificate|oauth2.parameters|^(?:request|current|new|again)$",
    re.IGNORECASE,
)
"""Fields that are typed again: what they hold must be in no page and no row."""
PASSING = ("csrf_token", "confirmed", "act")
"""A question that was confirmed is asked again."""
MOST_BYTES, MOST_FIELDS = 56_000, 1_400
"""Below the limits of a form, because email and password are sent with it."""
SUBJECT = "form"
LASTS = 10 * MINUTE
PREFIX = "f."


@dataclass(frozen=True, slots=True)
class Kept:
    """A form: where it is sent to, the page that it stands on, whose it is, and its fields."""

    path: str
    page: str
    owner: str
    fields: Sequence[tuple[str, str]]

    @property
    def places(self) -> list[str]:
        """The pages that may have the form; that of refused ones has the address of another."""
        base = self.path.removesuffix("/preview")
        return list(dict.fromkeys((self.page, f"{base}/new", f"{base}/edit")))


async def ask(request: web.Request, visitor: SignedIn) -> web.Response | None:
    """Return the sign-in page with the form that was sent without a session, if it may be kept."""
    page = sent_from(request)
    if request.method != "POST" or page is None or "HX-Request" in request.headers:
        return None
    try:
        form = await guard.read_form(request)
    except Refusal:
        return None
    typed = _kept(request.rel_url.raw_path, page, form)
    if typed is None:
        return None
    context = {"next": page, "email": "", "fault": "", "wait": "", "kept": typed}
    return render(request, visitor, "sign_in.html", context, status=401)


def carried(form: Form) -> Kept | None:
    """Return the form that the sign-in page carried along."""
    path, page = (guard.inside(form.text(f"form.{name}")) for name in ("path", "page"))
    if not (path and page):
        return None
    fields = [
        (name.removeprefix(PREFIX), value)
        for name, value in form.pairs()
        if name.startswith(PREFIX) and not SECRET.search(name.removeprefix(PREFIX))
    ]
    return Kept(path, page, form.text("form.owner"), fields)


def belongs(typed: Kept, owner_id: str) -> bool:
    """Return whether this account filled in the form."""
    return typed.owner == guard.mark_of(owner_id)


async def later(request: web.Request, visitor: SignedIn, typed: Kept) -> None:
    """Keep the form for the next page of the visitor's session."""
    await _store(request, visitor, typed, typed.places)


async def again(request: web.Request, visitor: SignedIn, form: Form) -> web.Response | None:
    """Redirect to the page of a form whose token is that of an earlier session of the same account.

    None when the form may not be kept.
    """
    page = sent_from(request)
    typed = None if page is None else _kept(request.rel_url.raw_path, page, form)
    if typed is None or visitor.session is None or not belongs(typed, visitor.session.owner_id):
        return None
    await later(request, visitor, typed)
    return _to(typed.page)


async def bring_back(
    request: web.Request, visitor: SignedIn, response: web.StreamResponse
) -> web.StreamResponse:
    """Return the page with the kept form filled in, if it is the page of one."""
    waiting = await reveal.now(request, visitor, f"{SUBJECT}:{request.rel_url.raw_path}")
    if waiting is None:
        return response
    try:
        at, path, page, fields, places = json.decode(waiting, type=_Stored)
    except (DecodeError, ValidationError):
        return response
    typed = Kept(path, page, "", fields)
    if request.app[DB].clock.wall() - at > LASTS:
        return response
    if isinstance(response, web.Response) and response.status == 200:
        html = refilled(response.text or "", path, fields)
        if html is not None:
            response.text = html
            return response
    if not places:
        return web.Response(status=303, headers={"Location": "/console?done=form_gone"})
    await _store(request, visitor, typed, places)
    return _to(places[0])


_Stored = tuple[int, str, str, list[tuple[str, str]], list[str]]


async def _store(
    request: web.Request, visitor: SignedIn, typed: Kept, places: Sequence[str]
) -> None:
    stored: _Stored = (
        request.app[DB].clock.wall(), typed.path, typed.page, list(typed.fields), list(places[1:]),
    )  # fmt: skip
    where = f"{SUBJECT}:{urlsplit(places[0]).path}"
    await reveal.later(request, visitor, where, json.encode(stored).decode())


def _to(page: str) -> web.Response:
    where = f"{page}{'&' if '?' in page else '?'}done=form_back"
    return web.Response(status=303, headers={"Location": where})


def _kept(path: str, page: str, form: Form) -> Kept | None:
    owner = guard.owner_mark(form.text("csrf_token"))
    fields = [
        (name, value)
        for name, value in form.pairs()
        if name not in PASSING and not SECRET.search(name)
    ]
    if not owner or not fields or len(fields) > MOST_FIELDS or len(urlencode(fields)) > MOST_BYTES:
        return None
    return Kept(path, page, owner, fields)


def sent_from(request: web.Request) -> str | None:
    """Return the page of ours that sent a form, None when another site did or nobody says."""
    if request.headers.get("Origin") is None or guard.elsewhere(request):
        return None
    return guard.came_from(request) or None
