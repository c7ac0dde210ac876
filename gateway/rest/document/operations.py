"""What a route of the REST door tells of itself: an operation is its handler and its description.

Everything here is data; gateway.rest.document.openapi makes the document of it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web

from gateway.records.resource import Resource
from gateway.records.values.schemas import Schema

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Credential = Literal["any", "token", "none"]
"""Which credentials an operation takes: an API key or a token, a token alone, or none at all."""


@dataclass(frozen=True, eq=False, slots=True)
class Shape:
    """A JSON value: its JSON Schema and an example. With a name it is a component of its own.

    `parts` are further components that the schema refers to.
    """

    schema: Schema
    example: Any
    name: str = ""
    parts: Mapping[str, Schema] = field(default_factory=dict)


def path_of(resource: Resource) -> str:
    """The path of a resource's collection."""
    return f"/api/{resource.plural}"


@dataclass(frozen=True, eq=False, slots=True)
class Parameter:
    """A parameter of the query, the path or the headers."""

    name: str
    schema: Schema
    description: str
    example: Any
    where: Literal["query", "path", "header"] = "query"


@dataclass(frozen=True, eq=False, slots=True)
class Answer:
    """A success: its body (None: there is none), its headers, and the media type of the body."""

    description: str
    body: Shape | None
    headers: Sequence[str] = ()
    """Names in gateway.rest.document.openapi.HEADERS."""
    media_type: str = "application/json"
    texts: Mapping[str, str] = field(default_factory=dict)
    """Further media types that a client may ask for, each with an example."""


@dataclass(frozen=True, eq=False, slots=True)
class Operation:
    """One thing a client can do.

    `refusals` are the codes of gateway.records.errors beyond those that follow from the rest of it.
    """

    handle: Handler
    name: str
    """Its operationId."""
    tag: str
    summary: str
    answers: Mapping[int, Answer]
    description: str = ""
    credential: Credential = "any"
    parameters: Sequence[Parameter] = ()
    body: Shape | None = None
    body_optional: bool = False
    refusals: Sequence[str] = ()


def operation(
    name: str,
    tag: str,
    summary: str,
    answer: Shape | None,
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
    """Decorate a handler that stands alone with what the document says of it."""
    answers = {status: Answer(f"{summary}.", answer, headers, media_type, texts or {})}

    def described(handle: Handler) -> Operation:
        return Operation(
            handle, name, tag, summary, answers, description, credential, parameters, body,
            refusals=refusals,
        )  # fmt: skip

    return described
