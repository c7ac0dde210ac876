"""The pages of API keys: list, create (shown once), revoke; and what programs may do by MCP."""

import re
from collections.abc import Sequence

from aiohttp import web

from gateway.console.layout import error_pages, guard, pages, reveal, templates, wording
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.domain.accounts import agents, api_keys, sessions
from gateway.domain.accounts.agents import Allowed
from gateway.records.errors import Fault, Refusal
from gateway.records.values.patterns import NOT_TEXT
from gateway.server.app_keys import CELLS, CREDENTIALS, DB, IDS
from gateway.server.installation import ACCOUNT_RULES
from outbox.database.transaction import Row, Tx
from outbox.durations import DAY

LIST = "/console/keys"
DAYS = (30, 90, 365)
LONGEST_NAME = 100
SCOPES = ("read", "write")
Typed = tuple[str, Sequence[str], str, Sequence[str]]
EMPTY: Typed = ("", SCOPES, "", ())


async def index(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """List all keys, with the form for a new one and the key just created, if any."""
    shown = await reveal.now(request, visitor, LIST)
    return await _page(request, visitor, shown=shown)


async def create(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Create a key; the page then shows it once."""
    name, scopes, days = form.text("name").strip(), tuple(form.all("scopes")), form.text("expires")
    resources = tuple(form.all("resources"))
    typed: Typed = (name, scopes, days, resources)
    faults = _faults(*typed)
    if faults:
        return await _page(request, visitor, typed=typed, faults=faults, status=400)
    database, session = request.app[DB], visitor.session
    assert session is not None, "no form without a session leads here"
    text = request.app[CELLS].marked(api_keys.make(request.app[IDS]), visitor.actor.owner_id)
    expires_at = database.clock.wall() + int(days) * DAY if days else None
    key = api_keys.KeyDraft(name, text, scopes, expires_at, resources or None)
    actor, most = visitor.actor, request.app[ACCOUNT_RULES].most_keys
    try:
        await database.write(
            sessions.while_live, session, api_keys.add, actor.owner_id, key, most=most, actor=actor
        )
    except Refusal as full:
        if full.code == "unauthenticated":
            raise
        faults = [Fault("name", full.code, full.message)]
        return await _page(
            request,
            visitor,
            typed=typed,
            faults=faults,
            status=error_pages.status_of(full),
        )
    await reveal.later(request, visitor, LIST, text)
    return pages.to(LIST, "key_created")


async def allow(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Set what programs may do by MCP."""
    chosen = Allowed("yes" in form.all("deletes"), "yes" in form.all("replays"))
    await request.app[DB].write(agents.allow, visitor.actor, chosen)
    return pages.to(LIST, "account_saved")


async def revoke_page(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Ask for confirmation before a key is revoked."""
    key = await request.app[DB].read(api_keys.one, pages.id_of(request))
    if key is None or key["owner_id"] != visitor.actor.owner_id:
        raise Refusal("not_found", "error.not_found_help")
    return templates.render(request, visitor, "revoke.html", {"key": key})


async def revoke(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Revoke a key; it stops working at once."""
    key_id = pages.id_of(request)
    if not await request.app[DB].write(
        api_keys.revoke, visitor.actor.owner_id, key_id, visitor.actor
    ):
        raise Refusal("not_found", "error.not_found_help")
    request.app[CREDENTIALS].forget()
    return pages.to(LIST, "revoked")


async def _page(
    request: web.Request,
    visitor: SignedIn,
    *,
    shown: str | None = None,
    typed: Typed = EMPTY,
    faults: Sequence[Fault] = (),
    status: int = 200,
) -> web.Response:
    keys, may = await request.app[DB].read(_stored, visitor.actor.owner_id)
    context = {
        "keys": [
            (key, sorted(api_keys.scopes_of(key)), sorted(api_keys.resources_of(key) or ()))
            for key in keys
        ],
        "shown": shown, "may": may, "resources": api_keys.RESOURCES, "chosen": typed[3],
        "name": typed[0], "scopes": typed[1], "expires": typed[2], "days": DAYS,
        "faults": wording.by_field(request[READER].texts, faults),
        "origin": guard.origin_of(request),
    }  # fmt: skip
    return templates.render(request, visitor, "keys.html", context, status=status)


async def _stored(tx: Tx, owner_id: str) -> tuple[list[Row], Allowed]:
    return await api_keys.listed(tx, owner_id), await agents.allowed(tx, owner_id)


def _faults(name: str, scopes: Sequence[str], days: str, resources: Sequence[str]) -> list[Fault]:
    faults = []
    if not name or len(name) > LONGEST_NAME or NOT_TEXT.search(name):
        faults.append(
            Fault("name", "required", f"Enter a name of at most {LONGEST_NAME} characters.")
        )
    if not scopes or not set(scopes) <= set(SCOPES):
        faults.append(Fault("scopes", "required", "Select at least one scope."))
    if days and not (re.fullmatch("[0-9]{1,4}", days) and 1 <= int(days) <= 3650):
        faults.append(Fault("expires", "out_of_range", "Select when the key expires."))
    if not set(resources) <= set(api_keys.RESOURCES):
        faults.append(Fault("resources", "not_allowed", "Select only what is listed."))
    return faults
