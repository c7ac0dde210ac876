"""The page of two-factor authentication: set it up, new recovery codes, turn it off."""

from collections.abc import Mapping
from typing import Any

import segno
from aiohttp import web
from markupsafe import Markup

from gateway.console.account import proofs
from gateway.console.account.proofs import CODE, Failure
from gateway.console.layout import pages, reveal, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.domain.accounts import codes, two_factor, users
from gateway.domain.accounts.two_factor import TwoFactorState
from gateway.domain.accounts.users import CheckedAccount
from gateway.records.errors import Refusal
from gateway.server.app_keys import CREDENTIALS, DB, IDS, KEYRING
from gateway.server.installation import ACCOUNT_RULES, SITE

PATH = pages.ENROL
PATHS = {"start": PATH, "confirm": PATH, "renew": f"{PATH}/codes", "end": f"{PATH}/end"}


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show how far it is, and new recovery codes once."""
    shown = await reveal.now(request, visitor, PATH)
    return await _page(request, visitor, shown=shown.split() if shown else [])


async def start(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Make a secret, which the page shows until a code confirms it."""
    secret = codes.new_secret(request.app[IDS])
    await request.app[DB].write(
        two_factor.start, request.app[KEYRING], visitor.actor.owner_id, secret
    )
    return pages.to(PATH)


async def stop(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Delete a secret that is not confirmed."""
    await request.app[DB].write(two_factor.stop, visitor.actor.owner_id)
    return pages.to(PATH)


async def confirm(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Turn it on with the password and a code; the page then shows the recovery codes once."""
    session = visitor.session
    assert session is not None, "no form without a session leads here"
    proof = await proofs.check_password(request, visitor, form)
    if not isinstance(proof, Failure):
        recovery = codes.new_recovery_codes(request.app[IDS])
        if await request.app[DB].write(
            users.after_check, proof, two_factor.confirm, request.app[KEYRING], visitor.actor,
            form.text(CODE), recovery=recovery, session_id=session.id,
            facts=proofs.facts_of(request),
        ):  # fmt: skip
            request.app[CREDENTIALS].forget()
            await reveal.later(request, visitor, PATH, " ".join(recovery))
            return pages.to(PATH, "two_factor_on")
        proof = Failure(CODE, request[READER].texts("code.wrong"))
    return await _page(request, visitor, "confirm", proof)


async def renew(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Make new recovery codes, for the password and a code."""
    proof = await _both(request, visitor, form)
    if isinstance(proof, Failure):
        return await _page(request, visitor, "renew", proof)
    recovery = codes.new_recovery_codes(request.app[IDS])
    await request.app[DB].write(
        users.after_check, proof, two_factor.renew, visitor.actor, recovery,
        proofs.facts_of(request),
    )  # fmt: skip
    await reveal.later(request, visitor, PATH, " ".join(recovery))
    return pages.to(PATH, "recovery_renewed")


async def end(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Turn it off, for the password and a code."""
    if request.app[ACCOUNT_RULES].require_two_factor:
        raise Refusal("forbidden", "error.two_factor_required")
    proof = await _both(request, visitor, form)
    if isinstance(proof, Failure):
        return await _page(request, visitor, "end", proof)
    await request.app[DB].write(
        users.after_check, proof, two_factor.end, proof.id, visitor.actor,
        proofs.facts_of(request),
    )  # fmt: skip
    return pages.to(PATH, "two_factor_off")


async def _both(request: web.Request, visitor: SignedIn, form: Form) -> CheckedAccount | Failure:
    # The password first: a wrong one uses up no code.
    proof = await proofs.check_password(request, visitor, form)
    if isinstance(proof, Failure):
        return proof
    return await proofs.code_failure(request, proof, form) or proof


async def _page(
    request: web.Request, visitor: SignedIn, which: str = "",
    failure: Failure | None = None, shown: list[str] | None = None,
) -> web.Response:  # fmt: skip
    """Return the page; `which` is the form that has failed."""
    standing = await request.app[DB].read(
        two_factor.standing, request.app[KEYRING], visitor.actor.owner_id
    )
    context: dict[str, Any] = {
        "standing": standing, "shown": shown or [], "fields": proofs.FIELDS, "failed": which,
        "path_of": PATHS, "picture": "", "required": request.app[ACCOUNT_RULES].require_two_factor,
        "faults": {failure.field: failure.text} if failure else {},
        **_drawn(request, visitor, standing),
    }  # fmt: skip
    status = failure.status if failure else 200
    response = templates.render(request, visitor, "two_factor.html", context, status=status)
    return response if failure is None else failure.answer(response)


def _drawn(request: web.Request, visitor: SignedIn, standing: TwoFactorState) -> Mapping[str, Any]:
    """Return the picture and the text of a secret that is to be confirmed."""
    if standing.secret is None or visitor.session is None:
        return {}
    issuer = request.app[SITE].service
    address = codes.address_of(standing.secret, visitor.session.user_email, issuer)
    drawn = segno.make(address, error="m", micro=False).svg_inline(
        scale=4, border=4, dark="#000", light="#fff", title=request[READER].texts("two_factor.qr"),
        svgclass=None, lineclass=None, omitsize=True,
    )  # fmt: skip
    # The library escapes the title; all else that it writes is numbers.
    return {
        "picture": Markup(drawn),  # noqa: S704 - the library escapes it
        "address": address,
        "secret": codes.spelled(standing.secret),
    }
