"""The account page: name, time zone and active sessions."""

from aiohttp import web

from gateway.console.frame import pages, templates
from gateway.console.frame.forms import Form
from gateway.console.frame.guard import Visitor
from gateway.domain.accounts import sessions, users
from gateway.domain.accounts.users import PROFILE
from gateway.records.draft import check
from gateway.records.errors import Fault, Refusal
from gateway.records.values import zones
from gateway.server.app_keys import CREDENTIALS, DB
from outbox.database.transaction import Row

ADDRESS = "/console/account"
FIELDS = ("name", "timezone")


async def show(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """Show the account and its active sessions."""
    user = await _user(request, visitor)
    return await _page(request, visitor, user, {name: str(user[name]) for name in FIELDS})


async def save(request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
    """Change name and time zone."""
    sent = {"name": form.text("name").strip(), "timezone": form.text("timezone")}
    checked = check(PROFILE, sent)
    if checked.faults:
        user = await _user(request, visitor)
        return await _page(request, visitor, user, sent, checked.faults)
    await request.app[DB].write(users.change, visitor.actor.owner_id, checked.values)
    # Cached callers contain the old time zone.
    request.app[CREDENTIALS].forget()
    return pages.to(ADDRESS, "account_saved")


async def _user(request: web.Request, visitor: Visitor) -> Row:
    user = await request.app[DB].read(users.one, visitor.actor.owner_id)
    if user is None:
        raise Refusal("not_found", "error.not_found_help")
    return user


async def _page(
    request: web.Request,
    visitor: Visitor,
    user: Row,
    typed: dict[str, str],
    faults: list[Fault] | None = None,
) -> web.Response:
    context = {
        "sessions": await request.app[DB].read(sessions.listed, visitor.actor.owner_id),
        "email": user["email"],
        "typed": typed,
        # The account's zone is always an option, even if this system does not know it.
        "zones": sorted(zones.names() | {user["timezone"]}),
        "faults": {fault.field: fault.message for fault in faults or ()},
    }
    return templates.render(
        request, visitor, "account.html", context, status=400 if faults else 200
    )
