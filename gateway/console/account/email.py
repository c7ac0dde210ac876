"""The pages for a change of an account's e-mail address: ask for it, confirm it by a link."""

from collections.abc import Mapping

from aiohttp import web

from gateway.console.account import proofs
from gateway.console.account.proofs import Failure
from gateway.console.layout import guard, pages, templates, wording
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.domain.accounts import account_tokens, email_changes, users
from gateway.domain.accounts.account_tokens import Opened
from gateway.domain.accounts.users import LONGEST_EMAIL
from gateway.records.errors import Refusal
from gateway.records.values import formats
from gateway.records.values.emails import fold_email
from gateway.records.values.formats import Wrong
from gateway.server.app_keys import DB
from gateway.server.http.rate_limits import LIMITS
from gateway.server.installation import SITE

ACCOUNT = "/console/account"


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the form for a new address, or what to do where no mail is sent."""
    return _page(request, visitor)


async def change(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Send a link to the new address, and a notice to the one of the account."""
    session = visitor.session
    assert session is not None, "no form without a session leads here"
    if not request.app[SITE].sends_links:
        return _page(request, visitor)
    email, texts = form.text("email").strip(), request[READER].texts
    try:
        email = formats.email().check(email)
    except Wrong as wrong:
        return _page(request, visitor, email, wording.by_field(texts, wrong.faults("email")))
    if fold_email(email) == fold_email(session.user_email):
        return _page(request, visitor, email, {"email": texts("email.same")})
    proof = await proofs.check_password(request, visitor, form)
    if isinstance(proof, Failure):
        faults = {proof.field: proof.text}
        return proof.answer(_page(request, visitor, email, faults, proof.status))
    await request.app[DB].write(
        users.after_check, proof, email_changes.request, visitor.actor, email,
        proofs.facts_of(request),
    )  # fmt: skip
    return pages.to(ACCOUNT, "email_sent")


async def confirm_page(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the question of the link in the mail; opening it uses nothing up."""
    token = request.query.get("token", "")
    found = await request.app[DB].read(account_tokens.opened, "email", token)
    return _confirm(request, visitor, token, found)


async def confirm(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Set the new address."""
    token = form.text("token")
    try:
        request.app[LIMITS].sign_in(guard.client_of(request).address)
        await request.app[DB].write(email_changes.confirm, token, proofs.facts_of(request))
    except Refusal as refusal:
        if refusal.code == "conflict":
            return _confirm(request, visitor, token, None, "email.taken", 409)
        if refusal.code != "forbidden":
            raise
        return _confirm(request, visitor, token, None, status=403)
    return pages.to(ACCOUNT if visitor.session else "/console/sign-in", "email_changed")


def _page(
    request: web.Request, visitor: SignedIn, email: str = "",
    faults: Mapping[str, str] | None = None, status: int = 400,
) -> web.Response:  # fmt: skip
    context = {
        "email": email,
        "faults": faults or {},
        "sends": request.app[SITE].sends_links,
        "longest": LONGEST_EMAIL,
    }
    status = status if faults else 200
    return templates.render(request, visitor, "email.html", context, status=status)


def _confirm(
    request: web.Request, visitor: SignedIn, token: str, found: Opened | None,
    fault: str = "first.gone", status: int = 200,
) -> web.Response:  # fmt: skip
    context = {"token": token, "found": found, "fault": fault}
    return templates.render(request, visitor, "confirm_email.html", context, status=status)
