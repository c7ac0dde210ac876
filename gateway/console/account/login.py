"""The pages for signing in and out, the first account, and ending sessions."""

from dataclasses import dataclass

from aiohttp import web

from gateway.console.account import entering, proofs, second_step
from gateway.console.layout import display, guard, kept_forms, pages, templates, wording
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.kept_forms import Kept
from gateway.console.layout.reader import READER
from gateway.domain.accounts import account_mails, sessions, users
from gateway.domain.accounts.passwords import LONGEST, SHORTEST, weakness_of
from gateway.domain.accounts.users import CheckedAccount
from gateway.domain.queued_mail import Facts
from gateway.domain.sales import new_accounts
from gateway.records.audit import Actor
from gateway.records.errors import Fault, Refusal
from gateway.records.values import formats
from gateway.records.values.emails import fold_email
from gateway.records.values.formats import Wrong
from gateway.records.values.patterns import NOT_TEXT
from gateway.server.app_keys import CELLS, DB, PASSWORDS, SIGN_IN
from gateway.server.http.rate_limits import LIMITS
from outbox.database.transaction import Tx


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the sign-in form shows again: the next page, the email, and a form that waits."""

    where: str
    email: str = ""
    kept: Kept | None = None


async def home(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Redirect the console's root address to its first page."""
    return pages.to(entering.HOME)


async def sign_in_page(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the sign-in form; redirect a user who is already signed in."""
    where = entering.inside(request.query.get("next", ""))
    if visitor.session is not None:
        return pages.to(where)
    return _sign_in_form(request, visitor, _Shown(where))


def slow_down(request: web.Request, visitor: SignedIn) -> web.StreamResponse | None:
    """Count an attempt of this address; return a response when there are too many.

    It runs before the form is read.
    """
    try:
        request.app[LIMITS].sign_in(guard.client_of(request).address)
    except Refusal as slow:
        where = entering.inside(request.query.get("next", ""))
        return _slow(request, visitor, _Shown(where), slow)
    return None


async def sign_in(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Check email and password; a wrong password and an unknown email get the same response."""
    where = entering.inside(form.text("next"))
    kept_form = kept_forms.carried(form)
    email = form.text("email")
    shown = _Shown(where, email, kept_form)
    password = form.text("password").encode("utf-8", "replace").decode()
    address = guard.client_of(request).address
    try:
        user = await request.app[SIGN_IN].check(email, password, address)
    except Refusal as slow:
        if slow.code != "rate_limited":
            raise
        return _slow(request, visitor, shown, slow)
    if user is None:
        elsewhere = await request.app[CELLS].of_name("email", fold_email(email))
        if elsewhere is not None:
            raise elsewhere
        return _sign_in_form(request, visitor, shown, "sign_in.wrong", status=401)
    account = users.as_checked(user)
    if account.two_factor_at is not None:
        return second_step.ask(request, visitor, account, where, kept_form)
    return await entering.welcome(request, visitor, account, where, kept_form)


async def sign_out(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """End this browser's session."""
    if visitor.session is not None:
        await request.app[DB].write(sessions.end, visitor.session.owner_id, visitor.session.id)
    return _goodbye(request, "signed_out")


async def first_account_page(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the form of the one-time link that `serve` prints."""
    token = request.query.get("token", "")
    open_ = await request.app[DB].read(sessions.first_account_open, token)
    return _first_account_form(request, visitor, token, open_)


async def first_account(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Create the first account and sign in with it."""
    token, email, name = form.text("token"), form.text("email").strip(), form.text("name").strip()
    password = form.text("password")
    if not await request.app[DB].read(sessions.first_account_open, token):
        return _first_account_form(request, visitor, token, False, status=403)
    faults = _account_faults(email, name, password)
    if faults:
        typed = {"email": email, "name": name}
        return _first_account_form(
            request, visitor, token, True, faults=faults, typed=typed, status=400
        )
    hashed = await request.app[PASSWORDS].hash(password)
    try:
        account = await request.app[DB].write(
            _create_first, token, email, name, hashed, request[READER].texts.code
        )
    except Refusal:
        return _first_account_form(request, visitor, token, False, status=403)
    return await entering.welcome(request, visitor, account, entering.HOME, created=True)


async def end_session(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """End one of the user's sessions."""
    session_id = request.match_info["id"]
    if visitor.session is not None and visitor.session.id == session_id:
        await request.app[DB].write(sessions.end, visitor.actor.owner_id, session_id)
        return _goodbye(request, "signed_out")
    await request.app[DB].write(
        _end_other, visitor.actor.owner_id, session_id, proofs.facts_of(request)
    )
    return pages.to("/console/account", "session_ended")


async def end_all(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """End all sessions of the user."""
    await request.app[DB].write(_end_all, visitor.actor, proofs.facts_of(request))
    return _goodbye(request, "signed_out_everywhere")


async def _end_other(tx: Tx, owner_id: str, session_id: str, facts: Facts) -> None:
    for session in await sessions.listed(tx, owner_id):
        if session.id == session_id:
            await sessions.end(tx, owner_id, session_id)
            ended = f"{display.browser(session.agent)}, {session.address}"
            facts = {**facts, "session": display.inert(ended)}
            await account_mails.add(tx, owner_id, "session_ended", facts)


async def _end_all(tx: Tx, actor: Actor, facts: Facts) -> None:
    await sessions.end_all(tx, actor.owner_id, actor)
    await account_mails.add(tx, actor.owner_id, "sessions_ended", facts)


async def _create_first(
    tx: Tx, token: str, email: str, name: str, password_hash: str, language: str
) -> CheckedAccount:
    await sessions.take_first_account(tx, token)
    user = await new_accounts.create(
        tx, language, email=email, name=name, password_hash=password_hash, via="session",
    )  # fmt: skip
    return users.as_checked(user)


def _goodbye(request: web.Request, done: str) -> web.StreamResponse:
    response = pages.to("/console/sign-in", done)
    guard.give_cookie(request, response, guard.new_token(request), None)
    return response


def _slow(request: web.Request, visitor: SignedIn, shown: _Shown, slow: Refusal) -> web.Response:
    """Return the form again, with the time to wait."""
    wait = str(slow.facts.get("retry_after", 60))
    response = _sign_in_form(request, visitor, shown, "sign_in.slow", wait=wait, status=429)
    response.headers["Retry-After"] = wait
    return response


def _sign_in_form(
    request: web.Request,
    visitor: SignedIn,
    shown: _Shown,
    fault: str = "",
    *,
    wait: str = "",
    status: int = 200,
) -> web.Response:
    context = {
        "next": shown.where,
        "email": shown.email,
        "kept": shown.kept,
        "fault": fault,
        "wait": wait,
    }
    return templates.render(request, visitor, "sign_in.html", context, status=status)


def _first_account_form(
    request: web.Request,
    visitor: SignedIn,
    token: str,
    is_open: bool,
    faults: list[Fault] | None = None,
    typed: dict[str, str] | None = None,
    status: int = 200,
) -> web.Response:
    context = {
        "token": token, "open": is_open, "shortest": SHORTEST, "longest": LONGEST,
        "faults": wording.by_field(request[READER].texts, faults or ()),
        "typed": typed or {"email": "", "name": ""},
    }  # fmt: skip
    return templates.render(request, visitor, "first_account.html", context, status=status)


def _account_faults(email: str, name: str, password: str) -> list[Fault]:
    faults = []
    try:
        formats.email().check(email)
    except Wrong as wrong:
        faults += wrong.faults("email")
    if not name or len(name) > 200 or NOT_TEXT.search(name):
        faults.append(Fault("name", "required", "Enter your name, at most 200 characters."))
    weakness = weakness_of(password, email)
    if weakness is not None:
        faults += weakness.faults("password")
    return faults
