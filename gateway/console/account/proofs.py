"""What a person proves before a change of an account's security: the password, or a code."""

from typing import NamedTuple

from aiohttp import web

from gateway.console.layout import display, guard
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.domain.accounts import two_factor, users
from gateway.domain.accounts.two_factor import Checked
from gateway.domain.accounts.users import CheckedAccount
from gateway.domain.queued_mail import Facts
from gateway.records.errors import Refusal
from gateway.server.app_keys import DB, KEYRING, SIGN_IN
from gateway.server.http.rate_limits import LIMITS

CODE, RECOVERY = "secret_code", "secret_recovery"
"""Fields whose names keep them out of forms that outlive a session."""
FIELDS = {"code": CODE, "recovery": RECOVERY}


class Failure(NamedTuple):
    """A proof that failed: the field, its text, and the seconds to wait if it came too early."""

    field: str
    text: str
    wait: str = ""

    @property
    def status(self) -> int:
        return 429 if self.wait else 400

    def answer(self, response: web.Response) -> web.Response:
        """Return the response that shows this failure, with its header."""
        if self.wait:
            response.headers["Retry-After"] = self.wait
        return response


def facts_of(request: web.Request) -> Facts:
    """Return whose browser it is, for the mail about what it does."""
    agent = request.headers.get("User-Agent", "").encode("utf-8", "replace").decode()
    return {
        "address": guard.client_of(request).address,
        "browser": display.inert(display.browser(agent)),
    }


async def check_password(
    request: web.Request, visitor: SignedIn, form: Form
) -> CheckedAccount | Failure:
    """Check the field `current`; a wrong password counts as a wrong sign-in.

    The change that it is for runs with `users.after_check`.
    """
    session = visitor.session
    assert session is not None, "no form without a session leads here"
    address = guard.client_of(request).address
    current = form.text("current").encode("utf-8", "replace").decode()
    try:
        request.app[LIMITS].sign_in(address)
        user = await request.app[SIGN_IN].check(session.user_email, current, address)
    except Refusal as slow:
        if slow.code != "rate_limited":
            raise
        return slow_failure(request, "current", slow.facts.get("retry_after", 60))
    if user is None or user["id"] != session.owner_id:
        return Failure("current", request[READER].texts("password.wrong"))
    return users.as_checked(user)


async def code_failure(request: web.Request, account: CheckedAccount, form: Form) -> Failure | None:
    """Check the code of an account with the right password, and use it up."""
    checked = await request.app[DB].write(
        two_factor.check, request.app[KEYRING], account.id, typed_code(form), facts_of(request),
        account,
    )  # fmt: skip
    return failure_of(request, checked)


def typed_code(form: Form) -> str:
    """Return the recovery code of a form, else the code of the app."""
    return form.text(RECOVERY) or form.text(CODE)


def failure_of(request: web.Request, checked: Checked) -> Failure | None:
    """Return what is wrong with a code."""
    if checked.result == "right":
        return None
    if checked.result == "wait":
        return slow_failure(request, CODE, checked.seconds)
    return Failure(CODE, request[READER].texts("code.wrong"))


def slow_failure(request: web.Request, field: str, seconds: int) -> Failure:
    """Return the failure of an attempt that came too early."""
    wait = str(seconds)
    return Failure(field, request[READER].texts("sign_in.slow", seconds=wait), wait)
