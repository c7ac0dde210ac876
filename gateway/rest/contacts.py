"""Handles the upsert of contacts by their email."""

from dataclasses import replace

from aiohttp import web

from gateway.domain.contacts import upsert
from gateway.domain.contacts.contacts import CONTACTS
from gateway.records import idempotency
from gateway.records.idempotency import Outcomes
from gateway.records.record import Draft, Record
from gateway.rest.auth import authenticate
from gateway.rest.body import draft_of, ignored, keep, read_body, readable, restore, written
from gateway.rest.document import describe, shapes
from gateway.rest.document.operations import Operation, Response, Shape, path_of
from gateway.rest.params import once_of
from gateway.server.app_keys import DB
from outbox.database.transaction import brief

_put = brief(upsert.put)


async def _upsert(request: web.Request) -> web.Response:
    """POST /api/contacts/upsert: update the oldest contact with this email, or create one."""
    caller = await authenticate(request)
    body = await read_body(request)
    new = draft_of(request, CONTACTS, body, creating=True)
    # Its unsent fields stay, also those with a default.
    changes = draft_of(request, CONTACTS, body)
    if changes.strict:
        # A field that only a new contact takes is ignored, but not unknown.
        changes.ignored = new.ignored

    def response(outcome: tuple[Record, bool]) -> web.Response:
        record, created = outcome
        headers = {"X-Created": "true" if created else "false"}
        if created:
            headers["Location"] = f"{path_of(CONTACTS)}/{record.id}"
        draft: Draft = new if created else changes
        return written(record, 201 if created else 200, headers | ignored(draft))

    use = once_of(caller, request, body)
    outcomes = Outcomes(response, keep, restore)
    put = await idempotency.write(
        request.app[DB], use, outcomes, _put, caller, new=new, changes=changes
    )
    return readable(caller, put)


def _body() -> Shape:
    shape = shapes.new(CONTACTS)
    schema = {**shape.schema, "required": ["email"]}
    return replace(shape, schema=schema, name="ContactUpsert")


def _response(text: str, *more: str) -> Response:
    body = shapes.written(shapes.record(CONTACTS))
    headers = ("ETag", "X-Created", "X-Ignored-Fields", "Idempotent-Replayed", *more)
    return Response(text, body, headers)


upsert_contact = Operation(
    _upsert, "upsertContact", "Contacts", "Update the contact with an email, or create it",
    {
        200: _response("The contact was there; it has the sent values now."),
        201: _response("The contact was created.", "Location"),
    },
    description="Finds the contact by its email without regard to case; of several the oldest one. "
    "Only the sent fields change. A new contact needs a name.",
    parameters=(describe.IDEMPOTENCY_KEY,), body=_body(),
)  # fmt: skip
