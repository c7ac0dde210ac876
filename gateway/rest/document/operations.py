"""Defines the types that describe a route: an operation is a handler and its description.

gateway.rest.document.openapi builds the document from them.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web

from gateway.records.resource import Resource
from gateway.records.values.schemas import Schema

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Credential = Literal["any", "token", "none"]
"""The credentials that an operation accepts: an API key or a token, only a token, or none."""


@dataclass(frozen=True, eq=False, slots=True)
class Shape:
    """The JSON Schema and an example of a JSON value. With a name it is a component.

    `parts` are further components that the schema refers to.
    """

    schema: Schema
    example: Any
    name: str = ""
    parts: Mapping[str, Schema] = field(default_factory=dict)


def path_of(resource: Resource) -> str:
    """Return the path of a resource's collection."""
    return f"/api/{resource.plural}"


@dataclass(frozen=True, eq=False, slots=True)
class Parameter:
    """A parameter of the query, the path or the headers."""

    name: str
    schema: Schema
    description: str
    example: Any
    """None where a fixed value could not work twice."""
    where: Literal["query", "path", "header"] = "query"
    allowed: Sequence[str] = ()
    """The texts of a schema that is a reference to a closed list."""


@dataclass(frozen=True, eq=False, slots=True)
class Response:
    """A successful response: its body or None, its headers, and the media type of the body."""

    description: str
    body: Shape | None
    headers: Sequence[str] = ()
    """Names in gateway.rest.document.openapi.HEADERS."""
    media_type: str = "application/json"
    texts: Mapping[str, str] = field(default_factory=dict)
    """Further media types, each with an example."""


@dataclass(frozen=True, eq=False, slots=True)
class Operation:
    """An operation that a client can call.

    `refusals` are the codes of gateway.records.errors that do not follow from its other fields.
    """

    handle: Handler
    name: str
    """The operationId."""
    tag: str
    summary: str
    responses: Mapping[int, Response]
    description: str = ""
    credential: Credential = "any"
    parameters: Sequence[Parameter] = ()
    body: Shape | None = None
    body_optional: bool = False
    body_type: str = "application/json"
    refusals: Sequence[str] = ()


def operation(
    name: str,
    tag: str,
    summary: str,
    response: Shape | None,
    *,
    status: int = 200,
    headers: Sequence[str] = (),
    description: str = "",
    credential: Credential = "any",
    parameters: Sequence[Parameter] = (),
    body: Shape | None = None,
    refusals: Sequence[str] = (),
    media_type: str = "application/json",
    texts: Mapping[str, str] | None = None,
) -> Callable[[Handler], Operation]:
    """Decorate a handler with its description in the document."""
    responses = {status: Response(f"{summary}.", response, headers, media_type, texts or {})}

    def described(handle: Handler) -> Operation:
        return Operation(
            handle=handle,
            name=name,
            tag=tag,
            summary=summary,
            responses=responses,
            description=description,
            credential=credential,
            parameters=parameters,
            body=body,
            refusals=refusals,
        )

    return described
