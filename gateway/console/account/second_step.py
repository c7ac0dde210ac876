"""The second step of signing in: the code of an account with two-factor authentication.

Between the steps the page holds who gave the right password, sealed for this browser and for ten
minutes. No session exists before the code is right.
"""

import base64
import binascii

from aiohttp import web
from msgspec import DecodeError, ValidationError, json

from gateway.console.account import entering, proofs
from gateway.console.layout import guard, kept_forms, pages, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.kept_forms import Kept
from gateway.domain.accounts import two_factor
from gateway.domain.accounts.users import CheckedAccount
from gateway.records.errors import Refusal
from gateway.server.app_keys import DB, KEYRING
from gateway.server.http.rate_limits import LIMITS
from outbox.durations import MINUTE
from outbox.webhooks.secrets import SealBroken

LASTS = 10 * MINUTE
FIELD = "sign_in_token"
_Passed = tuple[CheckedAccount, int]
"""The account with the right password, and the end."""


def ask(
    request: web.Request, visitor: SignedIn, account: CheckedAccount, where: str,
    kept_form: Kept | None,
) -> web.Response:  # fmt: skip
    """Ask an account with the right password for its code."""
    passed: _Passed = (account, request.app[DB].clock.wall() + LASTS)
    sealed = request.app[KEYRING].seal(json.encode(passed), _bound(visitor))
    return _page(request, visitor, base64.urlsafe_b64encode(sealed).decode(), where, kept_form)


async def check(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Sign in with the right code."""
    where, kept_form, token = (
        entering.inside(form.text("next")),
        kept_forms.carried(form),
        form.text(FIELD),
    )
    passed = _passed(request, visitor, token)
    if passed is None:
        return pages.to("/console/sign-in", "sign_in_again")
    try:
        request.app[LIMITS].sign_in(guard.client_of(request).address)
    except Refusal as slow:
        failure = proofs.slow_failure(request, proofs.CODE, slow.facts.get("retry_after", 60))
        return _page(request, visitor, token, where, kept_form, failure)
    account, _ = passed
    checked = await request.app[DB].write(
        two_factor.check, request.app[KEYRING], account.id, proofs.typed_code(form),
        proofs.facts_of(request), account,
    )  # fmt: skip
    if checked.result == "none":
        return pages.to("/console/sign-in", "sign_in_again")
    failed = proofs.failure_of(request, checked)
    if failed is not None:
        return _page(request, visitor, token, where, kept_form, failed)
    return await entering.welcome(request, visitor, account, where, kept_form)


def _passed(request: web.Request, visitor: SignedIn, token: str) -> _Passed | None:
    """Return who gave the right password in this browser, None after ten minutes."""
    try:
        sealed = base64.urlsafe_b64decode(token.encode("ascii"))
        passed = json.decode(request.app[KEYRING].open(sealed, _bound(visitor)), type=_Passed)
    except (UnicodeEncodeError, binascii.Error, SealBroken, DecodeError, ValidationError):
        return None
    return passed if passed[1] > request.app[DB].clock.wall() else None


def _bound(visitor: SignedIn) -> str:
    return f"second step {visitor.token}"


def _page(
    request: web.Request, visitor: SignedIn, token: str, where: str, kept_form: Kept | None,
    failure: proofs.Failure | None = None,
) -> web.Response:  # fmt: skip
    context = {
        "next": where, "kept": kept_form, "field": FIELD, "fields": proofs.FIELDS,
        "sign_in_token": token, "failure": failure.text if failure else "",
    }  # fmt: skip
    status = 200 if failure is None else failure.status if failure.wait else 401
    response = templates.render(request, visitor, "sign_in_code.html", context, status=status)
    return response if failure is None else failure.answer(response)
