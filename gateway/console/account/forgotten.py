"""The pages for a forgotten password: ask for a link by mail, and set a new password with it.

Neither says whether an address has an account. Opening the link uses nothing up.
"""

from collections.abc import Mapping

from aiohttp import web

from gateway.console.account import proofs
from gateway.console.layout import guard, pages, templates, wording
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.domain.accounts import account_tokens, password_resets
from gateway.domain.accounts.networks import share_of
from gateway.domain.accounts.passwords import LONGEST, SHORTEST, weakness_of
from gateway.records.errors import Refusal
from gateway.records.values import formats
from gateway.records.values.emails import fold_email
from gateway.records.values.formats import Wrong
from gateway.server.app_keys import CELLS, CREDENTIALS, DB, PASSWORDS
from gateway.server.http.rate_limits import LIMITS
from gateway.server.installation import SITE

SIGN_IN = "/console/sign-in"


async def ask_page(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the form that asks for a link, or what to do where no mail is sent."""
    return _ask(request, visitor)


async def ask(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Queue a link to an address; the answer is the same whether an account has it or not."""
    if not request.app[SITE].sends_links:
        return _ask(request, visitor)
    email = form.text("email").strip()
    try:
        email = formats.email().check(email)
    except Wrong as wrong:
        fault = wording.together(request[READER].texts, wrong.faults("email"))
        return _ask(request, visitor, email, fault)
    try:
        request.app[LIMITS].count("form", share_of(guard.client_of(request).address))
    except Refusal as slow:
        failure = proofs.slow_failure(request, "email", slow.facts.get("retry_after", 60))
        return failure.answer(_ask(request, visitor, email, failure.text, failure.status))
    elsewhere = await request.app[CELLS].of_name("email", fold_email(email))
    if elsewhere is not None:
        raise elsewhere
    await request.app[DB].write(password_resets.request, email)
    return pages.to(SIGN_IN, "reset_sent")


async def reset_page(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the form of the link in the mail."""
    token = request.query.get("token", "")
    found = await request.app[DB].read(account_tokens.opened, "reset", token)
    return _reset(request, visitor, token, found is not None)


async def reset(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Set the new password. Nobody is signed in by it: a code may be needed too."""
    token, new = form.text("token"), form.text("new")
    try:
        request.app[LIMITS].sign_in(guard.client_of(request).address)
    except Refusal as slow:
        failure = proofs.slow_failure(request, "new", slow.facts.get("retry_after", 60))
        faults = {"new": failure.text}
        return failure.answer(_reset(request, visitor, token, True, faults, failure.status))
    reset_token = await request.app[DB].read(account_tokens.opened, "reset", token)
    if reset_token is None:
        return _reset(request, visitor, token, False, status=403)
    faults = new_password_faults(request, reset_token.email, new, form.text("again"))
    if faults:
        return _reset(request, visitor, token, True, faults, 400)
    hashed = await request.app[PASSWORDS].hash(new, reset_token.owner_id)
    try:
        await request.app[DB].write(
            password_resets.set_password, token, hashed, proofs.facts_of(request)
        )
    except Refusal as used:
        if used.code != "forbidden":
            raise
        return _reset(request, visitor, token, False, status=403)
    request.app[CREDENTIALS].forget()
    return pages.to(SIGN_IN, "password_reset")


def new_password_faults(request: web.Request, email: str, new: str, again: str) -> dict[str, str]:
    """Return what is wrong with a new password that was typed twice."""
    texts = request[READER].texts
    weakness = weakness_of(new, email)
    if weakness is not None:
        return wording.by_field(texts, weakness.faults("new"))
    return {} if new == again else {"again": texts("password.differs")}


def _ask(
    request: web.Request, visitor: SignedIn, email: str = "", fault: str = "", status: int = 400
) -> web.Response:
    context = {
        "email": email,
        "faults": {"email": fault} if fault else {},
        "sends": request.app[SITE].sends_links,
    }
    status = status if fault else 200
    return templates.render(request, visitor, "forgotten_password.html", context, status=status)


def _reset(
    request: web.Request, visitor: SignedIn, token: str, is_open: bool,
    faults: Mapping[str, str] | None = None, status: int = 200,
) -> web.Response:  # fmt: skip
    context = {
        "token": token, "open": is_open, "faults": faults or {}, "shortest": SHORTEST,
        "longest": LONGEST,
    }  # fmt: skip
    return templates.render(request, visitor, "reset_password.html", context, status=status)
