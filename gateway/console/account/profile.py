"""The account page: name, time zone, language and active sessions."""

from collections.abc import Sequence

from aiohttp import web

from gateway import texts as languages
from gateway.console.layout import pages, templates, wording
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.domain.accounts import sessions, users
from gateway.domain.accounts.sessions import Session
from gateway.domain.accounts.users import PROFILE
from gateway.records.errors import Fault, Refusal
from gateway.records.record import check
from gateway.records.values import zones
from gateway.server.app_keys import CREDENTIALS, DB
from outbox.database.transaction import Row, Tx

ADDRESS = "/console/account"
FIELDS = ("name", "timezone", "language")


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the account and its active sessions."""
    return await _page(request, visitor)


async def save(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Change name, time zone and language; an empty language means as the browser asks."""
    values = {"name": form.text("name").strip(), "timezone": form.text("timezone")}
    language = form.text("language")
    checked = check(PROFILE, {**values, "language": language or None})
    values["language"] = language
    if checked.faults:
        return await _page(request, visitor, values, checked.faults)
    await request.app[DB].write(users.change, visitor.actor.owner_id, checked.values, visitor.actor)
    # Cached callers contain the old time zone.
    request.app[CREDENTIALS].forget()
    return pages.to(ADDRESS, "account_saved")


async def _page(
    request: web.Request,
    visitor: SignedIn,
    typed: dict[str, str] | None = None,
    faults: Sequence[Fault] = (),
) -> web.Response:
    user, active = await request.app[DB].read(_account, visitor.actor.owner_id)
    context = {
        "sessions": active,
        "email": user["email"],
        "typed": typed or {name: user[name] or "" for name in FIELDS},
        # The account's zone is always an option, even if this system does not know it.
        "languages": [languages.of(code) for code in languages.CODES],
        "zones": sorted(zones.names() | {user["timezone"]}),
        "faults": wording.by_field(request[READER].texts, faults),
    }
    return templates.render(
        request, visitor, "account.html", context, status=400 if faults else 200
    )


async def _account(tx: Tx, user_id: str) -> tuple[Row, Sequence[Session]]:
    """Return an account and its sessions. Raises not_found."""
    user = await users.one(tx, user_id)
    if user is None:
        raise Refusal("not_found", "error.not_found_help")
    return user, await sessions.listed(tx, user_id)
