"""Handles the rights of persons to their data: one file with everything, and erasure."""

from typing import Any

import msgspec
from aiohttp import web
from msgspec import UNSET, Struct, UnsetType

from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.contacts.person_erasures import Erasure as Stored
from gateway.domain.privacy import certificates, export, progress
from gateway.domain.storefront.visitors.customers import CUSTOMERS
from gateway.records.resource import Resource
from gateway.records.values.schemas import PLACE_ID, Id, Instant
from gateway.rest import lists, paging
from gateway.rest.auth import authenticate
from gateway.rest.body import PRIVATE, respond
from gateway.rest.document import shapes
from gateway.rest.document.describe import id_of, page_size
from gateway.rest.document.operations import Operation, Response, Shape, operation
from gateway.rest.document.schema_parts import title_of
from gateway.server.app_keys import DB, KEYRING
from gateway.server.http import bodies
from gateway.server.http.answers import Flow
from outbox.ids import is_id
from outbox.webhooks.secrets import KeyRing


class Kept(Struct, frozen=True, rename="camel"):
    """What is kept after an erasure, how many of it where they are counted, and why."""

    what: str
    why: str
    count: int | UnsetType = UNSET


class Seal(Struct, frozen=True, rename="camel"):
    """The digest over the certificate, the key of the key ring that made it, and if it fits.

    `intact` is absent when the key ring has lost the key.
    """

    key_id: str
    digest: str
    intact: bool | UnsetType = UNSET


class Erasure(Struct, frozen=True, rename="camel"):
    """The erasure of a person; with the state `done` it is the certificate.

    `recordIds` are the erased contacts and accounts, up to 100; `erased` counts what was erased by
    kind. Neither holds personal data.
    """

    id: Id
    record_id: Id
    resource: str
    state: str
    requested_at: Instant
    record_ids: list[Id]
    erased: dict[str, int]
    kept: list[Kept]
    completed_at: Instant | UnsetType = UNSET
    seal: Seal | UnsetType = UNSET


class Erasures(Struct, frozen=True, rename="camel"):
    """Erasures, newest first. Send `nextCursor` as `after` for the next page."""

    data: list[Erasure]
    next_cursor: Id | UnsetType = UNSET


_RUNNING = Erasure(
    id=shapes.example_id("erasure"),
    record_id=shapes.example_id("contact"),
    resource="contacts",
    state="running",
    requested_at=shapes.NOW,
    record_ids=[shapes.example_id("contact")],
    erased={"contacts": 1, "activities": 3},
    kept=[Kept("orders", certificates.why("orders"), 2), Kept("audit", certificates.why("audit"))],
)
EXAMPLE = msgspec.structs.replace(
    _RUNNING,
    state="done",
    completed_at=shapes.NOW,
    erased={"contacts": 1, "activities": 3, "events": 4, "deliveries": 2, "attempts": 5},
    seal=Seal("3f9a1c07", "9d" * 32, True),
)
_FILE: dict[str, Any] = {
    "type": "object",
    "description": "Everything about the person: `exportedAt`, `emails`, and a list for each kind "
    "of record, for `coupons`, `mails`, `events` and `audit`.",
    "properties": {
        "exportedAt": {"type": "string"},
        "emails": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["exportedAt", "emails"],
    "additionalProperties": True,
}


def data_export(resource: Resource) -> Operation:
    """Return GET of the file about the person with a contact or an account."""
    thing = title_of(resource)

    @operation(
        f"export{thing}Data", "Privacy", f"Export the personal data of a {resource.noun}",
        Shape(
            _FILE, {"exportedAt": shapes.NOW, "emails": ["maria@example.com"], "contacts": []},
            "PersonalData",
        ),
        headers=("Content-Disposition",),
        description="One file with everything that is stored about the person: all contacts and "
        "accounts with the same email, what points to them, their events with the exact bodies, "
        "and the audit log about them.",
        parameters=(id_of(resource.noun),),
    )  # fmt: skip
    async def handle(request: web.Request) -> web.StreamResponse:
        caller = await authenticate(request)
        db = request.app[DB]
        record_id = request.match_info["id"]
        record = await db.write(export.check, caller, resource, record_id)
        person = await export.found(db, caller, record)
        name = f'attachment; filename="person-{record.id}.json"'
        headers = {**PRIVATE, "Content-Disposition": name}
        return Flow(export.export(db, caller, person), headers)

    return handle


def erase(resource: Resource) -> Operation:
    """Return POST of the erasure of the person with a contact or an account."""
    thing = title_of(resource)
    body = shapes.written(shapes.struct(_RUNNING))
    responses = {
        202: Response("The erasure runs; read it at Location.", body, ("Location",)),
        200: Response("The person was erased before.", shapes.written(shapes.struct(EXAMPLE))),
    }

    async def handle(request: web.Request) -> web.Response:
        caller = await authenticate(request)
        # The handler ignores the body, so any body is valid.
        await bodies.read(request)
        erasure = await request.app[DB].write(
            certificates.request, caller, resource, request.match_info["id"]
        )
        erasure = await progress.at_once(request.app[DB], erasure)
        done = erasure.completed_at is not None
        shown = shape(erasure, request.app[KEYRING])
        if "read" not in caller.scopes:
            answer = web.Response(
                body=msgspec.json.encode({"id": erasure.id}),
                headers=PRIVATE,
                status=200 if done else 202,
            )
        else:
            answer = respond(shown, 200 if done else 202)
        if not done:
            answer.headers["Location"] = f"/api/erasures/{erasure.id}"
        return answer

    return Operation(
        handle, f"erase{thing}", "Privacy", f"Erase the person of a {resource.noun}", responses,
        description="Erases the person everywhere: all contacts and accounts with the same email, "
        "their events and the log, orders (which stay without the person), mails and stored "
        "responses. A repeat returns the same erasure. When it is done, `person.erased` goes to "
        "operational webhooks.",
        parameters=(id_of(resource.noun),),
        refusals=("payload_too_large", "unsupported_media_type"),
    )  # fmt: skip


@operation(
    "listErasures", "Privacy", "List erasures of persons", shapes.struct(Erasures([EXAMPLE])),
    parameters=(
        *paging.places(PLACE_ID, shapes.example_id("erasure")),
        page_size(),
    ),
)  # fmt: skip
async def list_erasures(request: web.Request) -> web.Response:
    """GET /api/erasures: list the caller's erasures, newest first."""
    caller = await authenticate(request)
    after, limit = paging.page_of(request.query, is_id)
    rows = await lists.read(request, certificates.listed, caller, after.lower() or None, limit + 1)
    rows, cursor = paging.cut(rows, limit, lambda row: row.id)
    data = [shape(one, request.app[KEYRING]) for one in rows]
    return respond(Erasures(data, UNSET if cursor is None else cursor))


@operation(
    "getErasure", "Privacy", "Read an erasure and its certificate", shapes.struct(EXAMPLE),
    parameters=(id_of("erasure"),),
)  # fmt: skip
async def read_erasure(request: web.Request) -> web.Response:
    """GET /api/erasures/{id}: read an erasure; when it is done, its certificate."""
    caller = await authenticate(request)
    erasure = await request.app[DB].read(certificates.own, caller, request.match_info["id"])
    return respond(shape(erasure, request.app[KEYRING]))


def shape(erasure: Stored, ring: KeyRing) -> Erasure:
    """Return the JSON form of an erasure."""
    intact = certificates.is_intact(erasure, ring)
    seal: Seal | UnsetType = UNSET
    if erasure.seal is not None:
        seal = Seal(erasure.seal_key or "", erasure.seal, UNSET if intact is None else intact)
    whole = msgspec.convert(certificates.shown(erasure), Erasure)
    return msgspec.structs.replace(whole, seal=seal)


CONTACT_EXPORT, CLIENT_EXPORT = data_export(CONTACTS), data_export(CUSTOMERS)
ERASE_CONTACT, ERASE_CLIENT = erase(CONTACTS), erase(CUSTOMERS)
