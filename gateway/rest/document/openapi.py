"""Builds the OpenAPI 3.1 document from the route table and the event catalogue."""

from collections.abc import Iterable, Sequence
from typing import Any

from gateway.rest.document import error_responses
from gateway.rest.document.describe import PREFER
from gateway.rest.document.operations import Operation, Parameter, Response, Shape
from gateway.rest.document.schema_parts import reference
from gateway.rest.document.webhook_entries import webhooks
from gateway.rest.errors import STATUS

VERSION = "1.0.0"
TITLE = "Carteiro REST API"
ABOUT = """\
A CRM that sends its events as signed webhooks.

Send an API key as `X-API-Key`, or a key or a token from `POST /api/auth/token` as
`Authorization: Bearer`. Every record belongs to the user who created it; other users get 403.
`HEAD` works wherever `GET` does. Records omit unset optional fields. Amounts are in BRL with at
most two decimals, times are in UTC. Version 1.x only adds fields and operations.
"""
SECURITY_SCHEMES = {
    "apiKeyAuth": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "bearerAuth": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token from POST /api/auth/token, or an API key.",
    },
}
SECURITY: dict[str, list[dict[str, list[str]]]] = {
    "any": [{"apiKeyAuth": []}, {"bearerAuth": []}],
    "token": [{"bearerAuth": []}],
    "none": [],
}
_TEXT = {"type": "string"}
_HEADERS: dict[str, tuple[dict[str, str], str]] = {
    "X-Request-Id": (_TEXT, "The id of the request in logs and in the deliveries it caused."),
    "RateLimit": (_TEXT, 'The rest of the quota, such as "read";r=99;t=1.'),
    "RateLimit-Policy": (_TEXT, 'The quota, such as "read";q=100;w=1.'),
    "ETag": (_TEXT, "The tag of the record's state, for If-Match and If-None-Match."),
    "Location": (_TEXT, "The path of the new record."),
    "Content-Disposition": (_TEXT, "The file name, with `format=csv`."),
    "Link": (_TEXT, "The next page (rel=next), if there is one."),
    "X-Created": (_TEXT, "true when the record was created, false when it was there."),
    "X-Ignored-Fields": (_TEXT, "The ignored fields of the body."),
    "X-Ignored-Parameters": (_TEXT, "The ignored parameters of the query."),
    "Preference-Applied": (_TEXT, "handling=strict when the request was checked so."),
    "Idempotent-Replayed": (_TEXT, "true when the response is that of an earlier request."),
    "Retry-After": ({"type": "integer"}, "Seconds to wait."),
    "WWW-Authenticate": (_TEXT, "The supported schemes."),
    "X-Carteiro-Cell": (_TEXT, "The name of the cell that has the account."),
}
ALWAYS = ("X-Request-Id",)
LIMITED = ("RateLimit", "RateLimit-Policy")

Routes = Iterable[tuple[str, str, Operation]]


def document(routes: Routes) -> dict[str, Any]:
    """Return the document of these routes."""
    components = Components()
    paths: dict[str, dict[str, Any]] = {}
    tags: dict[str, None] = {}
    for method, path, operation in routes:
        tags.setdefault(operation.tag)
        paths.setdefault(path, {})[method.lower()] = _entry(method, path, operation, components)
    events = webhooks(components.use)
    responses = {
        f"Error{status}": error_responses.response(status, components.use, _headers)
        for status in sorted({*STATUS.values()} - {405, 500})
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": VERSION, "description": ABOUT},
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in tags],
        "paths": paths,
        "webhooks": events,
        "components": {
            "schemas": dict(sorted(components.schemas.items())),
            "responses": responses,
            "headers": {
                name: {
                    "schema": schema,
                    "description": text,
                    **({"required": True} if name in ALWAYS else {}),
                }
                for name, (schema, text) in _HEADERS.items()
            },
            "securitySchemes": SECURITY_SCHEMES,
        },
    }


class Components:
    """The named schemas of the document."""

    def __init__(self) -> None:
        self.schemas: dict[str, Any] = {}

    def use(self, shape: Shape) -> dict[str, Any]:
        """Return a shape's schema, or a reference to its name. Raises ValueError on a clash."""
        named = dict(shape.parts) | ({shape.name: shape.schema} if shape.name else {})
        for name, schema in named.items():
            if self.schemas.setdefault(name, schema) != schema:
                raise ValueError(f"Two different schemas have the name {name}.")
        return reference(shape.name) if shape.name else dict(shape.schema)


def _entry(method: str, path: str, operation: Operation, components: Components) -> dict[str, Any]:
    name = operation.name
    if method == "PATCH":
        # PATCH is the same operation as PUT, and operation ids are unique.
        name = f"patch{name.removeprefix('update')}"
    entry: dict[str, Any] = {
        "operationId": name,
        "tags": [operation.tag],
        "summary": operation.summary,
        **({"description": operation.description} if operation.description else {}),
        "security": SECURITY[operation.credential],
        "parameters": [
            _parameter(p)
            for p in (*operation.parameters, *((PREFER,) if _may_be_strict(operation) else ()))
        ],
    }
    if operation.body is not None:
        body = operation.body
        entry["requestBody"] = {
            "required": not operation.body_optional,
            "content": {
                operation.body_type: {"schema": components.use(body), "example": body.example}
            },
        }
    responses = {
        str(status): _response(method, response, operation, components)
        for status, response in operation.responses.items()
    }
    for status in error_responses.statuses(path, operation):
        responses[str(status)] = (
            {"description": "Not changed.", "headers": _headers((*ALWAYS, "ETag"))}
            if status == 304
            else {"$ref": f"#/components/responses/Error{status}"}
        )
    return {**entry, "responses": dict(sorted(responses.items()))}


def _may_be_strict(operation: Operation) -> bool:
    return operation.body is not None or any(p.where == "query" for p in operation.parameters)


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.where,
        "required": parameter.where == "path",
        "description": parameter.description,
        "schema": parameter.schema,
        **({} if parameter.example is None else {"example": parameter.example}),
    }


def _response(
    method: str, response: Response, operation: Operation, components: Components
) -> dict[str, Any]:
    limited = LIMITED if operation.credential != "none" else ()
    queried = method == "GET" or any(p.where == "query" for p in operation.parameters)
    asked = ("X-Ignored-Parameters",) if queried else ()
    strict = ("Preference-Applied",) if _may_be_strict(operation) else ()
    entry: dict[str, Any] = {
        "description": response.description,
        "headers": _headers((*ALWAYS, *limited, *response.headers, *asked, *strict)),
    }
    if response.body is not None:
        body = {"schema": components.use(response.body), "example": response.body.example}
        entry["content"] = {response.media_type: body} | {
            kind: {"schema": {"type": "string"}, "example": text}
            for kind, text in response.texts.items()
        }
    return entry


def _headers(names: Sequence[str]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
