"""Handles the audit log: who changed which record, and which of its fields."""

from typing import Literal

import msgspec
from aiohttp import web
from msgspec import UNSET, Struct, UnsetType

from gateway.domain.audit import entries
from gateway.domain.audit.entries import Query
from gateway.records.audit import ACTIONS, KINDS
from gateway.records.values import dates
from gateway.records.values.schemas import ANY_ID, PLACE_ID, Id, Instant
from gateway.rest import lists, paging
from gateway.rest.auth import authenticate
from gateway.rest.document import shapes
from gateway.rest.document.describe import page_size
from gateway.rest.document.operations import Parameter, operation
from gateway.rest.errors import JSON
from gateway.rest.params import window
from gateway.rest.scans import scan
from outbox.ids import is_id


class AuditActor(Struct, frozen=True):
    """Who acted.

    `kind` is `account` (in the console), `api_key`, `token`, `customer` or `visitor` of a store, or
    `system`. Without an id: the system, whose name is why it acted: `command`, `customer` (by a
    link), `erasure`, `expiry`, `import` or `payment`. A token has the id of its account, a visitor
    that of the store. `name` is the one of today, absent when the actor was deleted.
    """

    kind: str
    id: Id | UnsetType = UNSET
    name: str | UnsetType = UNSET


class AuditEntry(Struct, frozen=True, rename="camel"):
    """One change. `fields` are the names of the changed fields; a create and a delete name none.

    `via` is `mcp` for a change by an MCP client, whose own name is `client`.
    """

    id: Id
    at: Instant
    actor: AuditActor
    action: str
    resource: str
    fields: list[str]
    record_id: Id | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
    via: Literal["mcp"] | UnsetType = UNSET
    client: str | UnsetType = UNSET


class AuditLog(Struct, frozen=True, rename="camel"):
    """Entries, newest first. Send `nextCursor` as `after` for the next page while `hasMore`."""

    data: list[AuditEntry]
    has_more: bool
    next_cursor: Id | UnsetType = UNSET


EXAMPLE = AuditLog(
    [
        AuditEntry(
            id=shapes.example_id("audit"),
            at=shapes.NOW,
            actor=AuditActor("api_key", shapes.example_id("key"), "Zapier"),
            action="updated",
            resource="contact",
            fields=["phone", "tags"],
            record_id=shapes.example_id("contact"),
            request_id="6b7f0c1e",
        )
    ],
    False,
)


@operation(
    "listAudit", "Audit", "Read the audit log", shapes.struct(EXAMPLE), headers=("Link",),
    description="Who changed which of the caller's records, newest first, for 90 days by default. "
    "It has the names of changed fields, never their values. With `actor` or `action` a page can "
    "be short or empty although `hasMore` is true. A filter that matches nothing gives an empty "
    "list.",
    parameters=(
        Parameter(
            "recordId", ANY_ID, "Only entries of this record.", shapes.example_id("contact")
        ),
        Parameter(
            "actor", {"type": "string", "pattern": f"^({'|'.join(KINDS)}|[0-9a-fA-F]{{24}})$"},
            f"Only what this actor did: an id, or a kind: {', '.join(KINDS)}.", "api_key",
        ),
        Parameter(
            "action", {"type": "string", "enum": list(ACTIONS)}, "Only this action.", "updated",
        ),
        *paging.places(PLACE_ID, shapes.example_id("audit")),
        page_size(),
    ),
)  # fmt: skip
async def list_audit(request: web.Request) -> web.Response:
    """GET /api/audit: list the entries of the caller's log."""
    caller = await authenticate(request)
    query = request.query
    (after, name), (_, limit) = paging.place_of(query), window(query)
    if after and not is_id(after):
        raise paging.no_place(name)
    wanted = Query(*(query.get(name, "").strip() for name in ("recordId", "actor", "action")))
    if wanted.narrow and wanted.possible:
        page = await scan(request, caller, "filtered", entries.page, wanted, after, size=limit)
    else:
        page = await lists.read(request, entries.page, caller, wanted, after, limit)
    headers = {"Content-Type": JSON}
    if page.after is not None:
        headers["Link"] = paging.link_of(request, page.after)
    more = page.after is not None
    body = AuditLog(
        [_shown(entry) for entry in page.entries], more, UNSET if page.after is None else page.after
    )
    return web.Response(body=msgspec.json.encode(body), headers=headers)


def _shown(entry: entries.Entry) -> AuditEntry:
    who = entry.actor
    actor = AuditActor(
        who.kind, UNSET if who.id is None else who.id, UNSET if who.name is None else who.name
    )
    return AuditEntry(
        id=entry.id,
        at=dates.show(entry.at),
        actor=actor,
        action=entry.action,
        resource=entry.resource,
        fields=list(entry.fields),
        record_id=UNSET if entry.record_id is None else entry.record_id,
        request_id=UNSET if entry.request_id is None else entry.request_id,
        via=UNSET if entry.client is None else "mcp",
        client=UNSET if entry.client is None else entry.client,
    )
