"""The page on which a user changes the password."""

from collections.abc import Mapping

from aiohttp import web

from gateway.console.account import proofs
from gateway.console.account.forgotten import new_password_faults
from gateway.console.account.proofs import Failure
from gateway.console.layout import pages, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.domain.accounts import sessions, users
from gateway.domain.accounts.passwords import LONGEST, SHORTEST
from gateway.domain.accounts.sessions import Session
from gateway.domain.queued_mail import Facts
from gateway.records.audit import Actor
from gateway.server.app_keys import CREDENTIALS, DB, PASSWORDS
from outbox.database.transaction import Tx

ADDRESS = "/console/account"


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the form."""
    return _page(request, visitor)


async def change(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Change the password; every other session and token of the user ends.

    The fields: `current`, `new` and `again`. A wrong current password counts as a wrong sign-in.
    """
    session = visitor.session
    assert session is not None, "no form without a session leads here"
    new = form.text("new")
    faults = new_password_faults(request, session.user_email, new, form.text("again"))
    if faults:
        return _page(request, visitor, faults)
    proof = await proofs.check_password(request, visitor, form)
    if isinstance(proof, Failure):
        return proof.answer(_page(request, visitor, {proof.field: proof.text}, proof.status))
    hashed = await request.app[PASSWORDS].hash(new, session.owner_id)
    await request.app[DB].write(
        users.after_check, proof, _set, visitor.actor, session, hashed,
        facts=proofs.facts_of(request),
    )  # fmt: skip
    request.app[CREDENTIALS].forget()
    return pages.to(ADDRESS, "password_changed")


async def _set(tx: Tx, actor: Actor, session: Session, hashed: str, facts: Facts) -> None:
    await users.set_password(tx, session.owner_id, hashed, actor, facts)
    await sessions.end_others(tx, session.owner_id, session.id)


def _page(
    request: web.Request,
    visitor: SignedIn,
    faults: Mapping[str, str] | None = None,
    status: int = 400,
) -> web.Response:
    context = {"faults": faults or {}, "shortest": SHORTEST, "longest": LONGEST}
    status = status if faults else 200
    return templates.render(request, visitor, "password.html", context, status=status)
