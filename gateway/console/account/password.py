"""The page on which a user changes the password."""

from collections.abc import Mapping

from aiohttp import web

from gateway.console.frame import guard, pages, templates, wording
from gateway.console.frame.forms import Form
from gateway.console.frame.guard import Visitor
from gateway.console.frame.reader import READER
from gateway.domain.accounts import sessions, users
from gateway.domain.accounts.passwords import LONGEST, SHORTEST, sentence_of, weakness_of
from gateway.domain.accounts.sessions import Session
from gateway.records.access import Actor
from gateway.records.errors import Fault, Refusal
from gateway.server.app_keys import CREDENTIALS, DB, PASSWORDS, SIGN_IN
from gateway.server.http.rate_limits import LIMITS
from outbox.database.transaction import Tx

ADDRESS = "/console/account"


async def show(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """Show the form."""
    return _page(request, visitor)


async def change(request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
    """Change the password; every other session and token of the user ends.

    The fields: `current`, `new` and `again`. A wrong current password counts as a wrong sign-in.
    """
    session = visitor.session
    assert session is not None, "no form without a session leads here"
    new = form.text("new")
    faults = _faults(request, session, new, form.text("again"))
    if faults:
        return _page(request, visitor, faults)
    address = guard.client_of(request).address
    current = form.text("current").encode("utf-8", "replace").decode()
    try:
        request.app[LIMITS].sign_in(address)
        user_id = await request.app[SIGN_IN].check(session.user_email, current, address)
    except Refusal as slow:
        if slow.code != "rate_limited":
            raise
        return _slow(request, visitor, slow)
    if user_id != session.owner_id:
        return _page(request, visitor, {"current": request[READER].texts("password.wrong")})
    hashed = await request.app[PASSWORDS].hash(new, session.owner_id)
    await request.app[DB].write(_set, visitor.actor, session, hashed)
    request.app[CREDENTIALS].forget()
    return pages.to(ADDRESS, "password_changed")


async def _set(tx: Tx, actor: Actor, session: Session, hashed: str) -> None:
    await users.set_password(tx, session.owner_id, hashed, actor)
    await sessions.end_others(tx, session.owner_id, session.id)


def _faults(request: web.Request, session: Session, new: str, again: str) -> Mapping[str, str]:
    """Return what is wrong with a new password that was typed twice."""
    texts = request[READER].texts
    weakness = weakness_of(new, session.user_email)
    if weakness is not None:
        return {"new": wording.said(texts, Fault("new", weakness, sentence_of(weakness, new)))}
    return {} if new == again else {"again": texts("password.differs")}


def _slow(request: web.Request, visitor: Visitor, slow: Refusal) -> web.Response:
    wait = str(slow.facts.get("retry_after", 60))
    faults = {"current": request[READER].texts("sign_in.slow", seconds=wait)}
    response = _page(request, visitor, faults, 429)
    response.headers["Retry-After"] = wait
    return response


def _page(
    request: web.Request,
    visitor: Visitor,
    faults: Mapping[str, str] | None = None,
    status: int = 400,
) -> web.Response:
    context = {"faults": faults or {}, "shortest": SHORTEST, "longest": LONGEST}
    status = status if faults else 200
    return templates.render(request, visitor, "password.html", context, status=status)
