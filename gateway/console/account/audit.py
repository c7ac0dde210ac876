"""The audit log of the account: who changed which record, and which of its fields."""

from collections.abc import Callable, Collection
from urllib.parse import urlencode

from aiohttp import web

from gateway.console.layout import templates
from gateway.console.layout.guard import SignedIn
from gateway.domain.audit import entries
from gateway.domain.audit.entries import Entry, Query
from gateway.domain.catalogue import RESOURCES
from gateway.records.audit import ACTIONS, KINDS
from gateway.server.app_keys import DB
from outbox.ids import is_id

PATH = "/console/audit"
PAGE = 50
PLACES = {
    "webhook": "/console/webhooks/{id}",
    "webhook secret": "/console/webhooks/{id}/rotate",
    "payment secret": "/console/stores/{id}/payment-secret",
    "delivery": "/console/deliveries/{id}",
    "job": "/console/jobs/{id}",
    "import": "/console/imports/{id}",
    "key": "/console/keys",
    "account": "/console/account",
    "session": "/console/account",
    "two-factor": "/console/account/two-factor",
    "checkpoint": "/console/checkpoints",
    **{resource.noun: f"/console/{resource.plural}/{{id}}" for resource in RESOURCES},
}
"""The pages of what entries name, for those that exist."""
GONE = ("deleted", "erased")


async def index(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """List the entries; the query parameters `record`, `actor` and `action` are filters."""
    filters = _filters(request)
    after = request.query.get("after", "")
    after = after if is_id(after) else ""
    query = Query(filters.get("record", ""), filters.get("actor", ""), filters.get("action", ""))
    actor = visitor.actor
    page = await request.app[DB].scan(actor.owner_id, entries.page, actor, query, after, PAGE)
    context = {
        "entries": page.entries, "onward": page.after, "after": after, "filters": filters,
        "this": f"{PATH}?{urlencode(filters)}", "kinds": KINDS, "actions": ACTIONS,
        "place_of": place_of(request),
    }  # fmt: skip
    return templates.render(request, visitor, "audit.html", context)


async def changes(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the last changes of the record of the query, as a part of its page."""
    record_id = request.query.get("record", "").lower()
    record_id = record_id if is_id(record_id) else "0" * 24
    latest = await request.app[DB].read(entries.latest, visitor.actor, record_id)
    context = {"changes": latest, "record_id": record_id}
    return templates.render(request, visitor, "parts/record_changes.html", context)


def place_of(request: web.Request) -> Callable[[Entry], str]:
    """Return a function that returns the page of what an entry names, or an empty text."""
    pages = {resource.canonical for resource in request.app.router.resources()}
    return lambda entry: _place(entry, pages)


def _place(entry: Entry, pages: Collection[str]) -> str:
    path = PLACES.get(entry.resource, "")
    if path not in pages or entry.action in GONE:
        return ""
    if "{id}" not in path:
        return path
    return path.replace("{id}", entry.record_id) if entry.record_id else ""


def _filters(request: web.Request) -> dict[str, str]:
    """Return the filters of the query that say something."""
    filters = {name: request.query.get(name, "").strip() for name in ("record", "actor", "action")}
    filters["record"] = "".join(filter(str.isprintable, filters["record"]))[:24]
    if filters["actor"] not in KINDS:
        filters["actor"] = ""
    if filters["action"] not in ACTIONS:
        filters["action"] = ""
    return {name: text for name, text in filters.items() if text}
