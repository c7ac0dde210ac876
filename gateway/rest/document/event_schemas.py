"""Serves the JSON Schema of each event, made of the declarations that the OpenAPI document has.

One document describes the three forms that receivers get: the body of the contract, the `data`
alone (of CloudEvents), and the reference in place of the data (of thin events).
"""

import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from aiohttp import web

from gateway.domain.catalogue import EVENTS
from gateway.records.errors import Refusal
from gateway.records.values.schemas import ID, Schema
from gateway.rest.auth import charge_address
from gateway.rest.document.operations import Parameter, Shape, operation
from gateway.rest.document.webhook_entries import body_of, cause_of
from gateway.server.installation import SITE
from outbox.events.cloud_events import TYPE_PREFIX, schema_of
from outbox.webhooks.operational import NAMES

DIALECT = "https://json-schema.org/draft/2020-12/schema"
CONTENT_TYPE = "application/schema+json"
CACHED_SECONDS = 3600
EVERY: tuple[str, ...] = (*EVENTS, *NAMES)
LOCAL = "#/$defs/"
UNKNOWN = "There is no event of this name; GET /api/schemas lists them all."
EXAMPLE = "https://crm.example"
SCHEMA = Shape(
    {"type": "object", "required": ["$schema", "$id", "anyOf", "$defs"]},
    {"$schema": DIALECT, "$id": schema_of(EXAMPLE, "contact.created"), "anyOf": [], "$defs": {}},
)
INDEX = Shape(
    {
        "type": "object",
        "properties": {
            "data": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "event": {"type": "string"},
                        "type": {"type": "string"},
                        "schema": {"type": "string", "format": "uri"},
                    },
                    "required": ["event", "type", "schema"],
                },
            }
        },
        "required": ["data"],
    },
    {
        "data": [
            {
                "event": "contact.created",
                "type": f"{TYPE_PREFIX}contact.created",
                "schema": schema_of(EXAMPLE, "contact.created"),
            }
        ]
    },
)


@operation(
    "listSchemas", "Documentation", "List the JSON Schemas of all events", INDEX,
    headers=("ETag",), credential="none", refusals=("rate_limited",),
    description="`type` is the type of the event as a CloudEvent. No credential is needed.",
)  # fmt: skip
async def index(request: web.Request) -> web.Response:
    """GET /api/schemas: return the name, the CloudEvents type and the schema of each event."""
    return _answer(request, "", "application/json")


@operation(
    "readSchema", "Documentation", "Read the JSON Schema of an event", SCHEMA,
    headers=("ETag",), credential="none", refusals=("not_found", "rate_limited"),
    media_type=CONTENT_TYPE,
    description="Draft 2020-12. It takes the body of a delivery, its `data` alone, and the "
    "reference of thin events; `$defs` has each of the three. It is the `dataschema` of "
    "CloudEvents. No credential is needed.",
    parameters=(
        Parameter(
            "event", {"type": "string"}, "The name of an event.", "contact.created", where="path"
        ),
    ),
)  # fmt: skip
async def read(request: web.Request) -> web.Response:
    """GET /api/schemas/{event}: return the schema of an event."""
    name = request.match_info["event"]
    if name not in EVERY:
        raise Refusal("not_found", UNKNOWN)
    return _answer(request, name, CONTENT_TYPE)


def schema(event: str, site: str) -> Schema:
    """Return the JSON Schema of an event's bodies; `site` is the public address of the server."""
    body = body_of(event)
    parts = {**body.parts, body.name: body.schema}
    data, forms = f"{body.name}Data", [body.name, f"{body.name}Data"]
    if event in EVENTS:
        thin = f"{body.name}Reference"
        parts[thin] = _reference(event)
        members = body.schema["properties"] | {"data": {"anyOf": [_use(data), _use(thin)]}}
        parts[body.name] = {**body.schema, "properties": members}
        forms.append(thin)
    needed: dict[str, Schema] = {}
    for form in forms:
        _collect(form, parts, needed)
    return {
        "$schema": DIALECT,
        "$id": schema_of(site, event),
        "title": event,
        "description": cause_of(event),
        "anyOf": [_use(form) for form in forms],
        "$defs": dict(sorted(needed.items())),
        "examples": [body.example],
    }


@cache
def rendered(event: str, site: str) -> tuple[bytes, str]:
    """Return a schema, or the index for an empty name, as bytes; and its digest."""
    document: Mapping[str, Any] = (
        schema(event, site)
        if event
        else {
            "data": [
                {"event": one, "type": f"{TYPE_PREFIX}{one}", "schema": schema_of(site, one)}
                for one in EVERY
            ]
        }
    )
    body = msgspec.json.encode(document)
    return body, hashlib.sha256(body).hexdigest()[:16]


def _answer(request: web.Request, event: str, content_type: str) -> web.Response:
    charge_address(request)
    body, tag = rendered(event, request.app[SITE].address)
    headers = {
        "ETag": f'"{tag}"',
        "Cache-Control": f"public, max-age={CACHED_SECONDS}",
        # Validators in browsers read it; it is public.
        "Access-Control-Allow-Origin": "*",
    }
    if any(known.value in (tag, "*") for known in request.if_none_match or ()):
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, headers={"Content-Type": content_type} | headers)


def _reference(event: str) -> Schema:
    """Return the schema of the data of a thin event."""
    members = {
        "id": ID,
        "type": {"const": event.partition(".")[0]},
        "url": {"type": "string", "format": "uri"},
    }
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def _use(name: str) -> dict[str, str]:
    return {"$ref": f"{LOCAL}{name}"}


def _collect(name: str, parts: Mapping[str, Schema], needed: dict[str, Schema]) -> None:
    """Put a part and all that it refers to into `needed`, with references into this document."""
    if name not in needed:
        needed[name] = {}
        needed[name] = _local(parts[name], parts, needed)


def _local(node: Any, parts: Mapping[str, Schema], needed: dict[str, Schema]) -> Any:
    if isinstance(node, list):
        return [_local(item, parts, needed) for item in node]
    if not isinstance(node, Mapping):
        return node
    target = node.get("$ref")
    if isinstance(target, str):
        name = target.rpartition("/")[2]
        _collect(name, parts, needed)
        return {**node, "$ref": f"{LOCAL}{name}"}
    return {key: _local(value, parts, needed) for key, value in node.items()}
