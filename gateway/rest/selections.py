"""Reads the parameters `fields` and `include`, and writes the responses that they select."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
from aiohttp import web

from gateway.domain.catalogue import BY_TABLE
from gateway.records import included
from gateway.records.audit import Actor
from gateway.records.included import Include, Included
from gateway.records.query import Page, Query, costly
from gateway.records.record import Record
from gateway.records.resource import Resource
from gateway.rest import lists, preferences
from gateway.rest.auth import charge
from gateway.rest.body import quoted, shape, shown
from gateway.rest.errors import JSON
from gateway.rest.scans import scan
from gateway.server.http.answers import Flow

UNKNOWN = web.RequestKey("UNKNOWN", list[str])
"""The names in `fields` and `include` that mean nothing."""
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Selection:
    """What a response has of each record, and the records beside them."""

    fields: frozenset[str] | None = None
    """Members of each record; None for all."""
    includes: Sequence[Include] = ()

    def shown(self, resource: Resource, records: Sequence[Record]) -> Sequence[Any]:
        """Return the JSON members of each record."""
        whole = shown(resource, records)
        if self.fields is None:
            return whole
        kind = shape(resource)
        omitted = dict(zip(kind.__struct_fields__, kind.__struct_defaults__, strict=True))
        names = [name for name in omitted if name in self.fields]
        return [
            {name: value for name in names if (value := getattr(record, name)) is not omitted[name]}
            for record in whole
        ]

    def whole(self, resource: Resource, content: Page) -> Page:
        """Return a page without long records when none of the members is long."""
        if self.fields is None or not content.long:
            return content
        columns = {f.column for f in resource.fields if f.name in self.fields}
        if not columns.isdisjoint(resource.long):
            return content
        return Page(content.records, content.total, content.onward, frozenset(), content.rest)


@lru_cache(maxsize=64)
def includes(resource: Resource) -> Mapping[str, Include]:
    """Return the references that `include` can name."""
    return included.offered(resource, BY_TABLE)


def selection_of(request: web.Request, resource: Resource) -> Selection | None:
    """Return what a request selects, or None when it has neither parameter.

    Unknown names are reported and mean nothing; without a known name all members are sent. With
    `Prefer: handling=strict` they are refused.
    """
    query = request.query
    if "fields" not in query and "include" not in query:
        return None
    known, offered = shape(resource).__struct_fields__, includes(resource)
    fields, include = _names(query, "fields"), _names(query, "include")
    request[UNKNOWN] = unknown = [
        *(f"fields.{name}" for name in fields if name not in known),
        *(f"include.{name}" for name in include if name not in offered),
    ]
    if unknown and preferences.is_strict(request):
        of = [*(f"fields.{name}" for name in known), *(f"include.{name}" for name in offered)]
        raise preferences.unknown(unknown, "parameter", of)
    selected_fields = frozenset(name for name in fields if name in known)
    return Selection(
        selected_fields | {"id"} if selected_fields else None,
        [offered[name] for name in include if name in offered],
    )


async def one(
    request: web.Request, caller: Actor, resource: Resource, record_id: str, selection: Selection
) -> web.StreamResponse:
    """Return the response with one record and those that it refers to."""
    charge(request, caller, len(selection.includes))
    record, beside = await lists.read(
        request, included.one, caller, resource, record_id, selection.includes
    )
    [members] = selection.shown(resource, [record])
    # For If-Match. If-None-Match is not asked: the records beside it may have changed.
    headers = {"Content-Type": JSON, "ETag": quoted(record.etag)}
    return Flow(_joined(request, caller, _whole(_encode(members)), beside), headers)


async def read(
    request: web.Request, caller: Actor, resource: Resource, query: Query, selection: Selection
) -> tuple[Page, Included]:
    """Return a page and the records that its records refer to, from one snapshot."""
    if selection.includes:
        charge(request, caller, len(selection.includes))
    kind = costly(resource, query)
    if kind is not None:
        content, beside = await scan(
            request, caller, kind, included.page,
            resource=resource, query=query, includes=selection.includes,
        )  # fmt: skip
    else:
        content, beside = await lists.read(
            request, included.page, caller, resource, query, selection.includes
        )
    return selection.whole(resource, content), beside


def page(
    request: web.Request,
    caller: Actor,
    head: AsyncGenerator[bytes, None],
    headers: Mapping[str, str],
    beside: Included,
) -> web.StreamResponse:
    """Return the response with the page of `head` and the records beside it.

    Included records are written while the client reads.
    """
    return Flow(_joined(request, caller, head, beside), {"Content-Type": JSON, **headers})


async def _whole(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body


async def _joined(
    request: web.Request, caller: Actor, head: AsyncGenerator[bytes, None], beside: Included
) -> AsyncGenerator[bytes, None]:
    waiting = b""
    async with aclosing(head):
        async for piece in head:
            if waiting:
                yield waiting
            waiting = piece
    # Without the brace that ends the object.
    start = waiting[:-1] + b',"included":{'
    for resource, content in beside.pages.items():
        yield start + _encode(resource.plural) + b":["
        async with aclosing(lists.joined(lists.pieces(request, caller, resource, content))) as each:
            async for piece in each:
                yield piece
        start = b"],"
    yield start[:1] + b',"truncated":true' * beside.truncated + b"}}"


def _names(query: Mapping[str, str], parameter: str) -> list[str]:
    """Return the names of a list that are separated by commas, each once."""
    names = (name.strip() for name in query.get(parameter, "").split(","))
    return [*dict.fromkeys(name for name in names if name)]
