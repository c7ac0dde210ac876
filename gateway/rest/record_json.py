"""Converts records to their JSON form and ETag, and makes the responses to writes."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import msgspec
from aiohttp import web
from msgspec import UNSET, Struct

from gateway.records.access import Actor
from gateway.records.record import CREATED_AT, ID, UPDATED_AT, Record
from gateway.records.resource import SYSTEM_COLUMNS, Resource
from gateway.records.values import dates
from gateway.rest.errors import JSON

_FIRST = len(SYSTEM_COLUMNS)
_encode = msgspec.json.Encoder().encode
NONE: Mapping[str, str] = MappingProxyType({})


@lru_cache(maxsize=256)
def shape(resource: Resource) -> type[Struct]:
    """Return the struct of a record's JSON members; its encoder omits members with the default."""
    members: list[tuple[str, Any, Any]] = [("id", Any, None)]
    # Null differs from the default of a field that is always shown.
    members += [(f.name, Any, UNSET if f.always else None) for f in resource.fields]
    members += [(d.name, Any, UNSET) for d in resource.derived if d.name not in resource.named]
    members += [("createdAt", Any, None), ("updatedAt", Any, None)]
    return msgspec.defstruct(resource.noun.capitalize(), members, omit_defaults=True, frozen=True)


def quoted(etag: str) -> str:
    """Return a tag in the form of the header ETag."""
    return f'"{etag}"'


def shown(resource: Resource, records: Sequence[Record]) -> list[Struct]:
    """Return the JSON members of each record, without unset fields except `always` ones."""
    make, shows, end = shape(resource), resource.shows, _FIRST + len(resource.fields)
    derives = resource.derives
    members = []
    for record in records:
        row = record.row
        fields = list(row[_FIRST:end])
        for place, show in shows:
            if (value := fields[place]) is not None:
                fields[place] = show(value)
        if derives:
            for derived_place, value in zip(derives, record.derived, strict=True):
                if derived_place is None:
                    fields.append(value)
                else:
                    fields[derived_place] = value
        updated_at = row[UPDATED_AT]
        members.append(
            make(
                row[ID],
                *fields,
                dates.show(row[CREATED_AT]),
                None if updated_at is None else dates.show(updated_at),
            )
        )
    return members


def members_of(record: Record) -> dict[str, Any]:
    """Return the JSON members of a record by name, without unset ones."""
    [one] = shown(record.resource, [record])
    members: dict[str, Any] = msgspec.json.decode(_encode(one))
    return members


def written(record: Record, status: int = 200, headers: Mapping[str, str] = NONE) -> web.Response:
    """Return the response to a write: its record."""
    [members] = shown(record.resource, [record])
    return answer(members, status, {"ETag": quoted(record.etag), **headers})


def answer(members: Any, status: int = 200, headers: Mapping[str, str] = NONE) -> web.Response:
    """Return the response with these members."""
    headers = {"Content-Type": JSON, **headers}
    return web.Response(status=status, body=_encode(members), headers=headers)


def readable(caller: Actor, response: web.Response) -> web.Response:
    """Return the response to a write for its caller: without the scope `read` the id alone.

    The kept response is complete; each repeat shows what its own credential can read.
    """
    if "read" not in caller.scopes and isinstance(response.body, bytes):
        whole: dict[str, Any] = msgspec.json.decode(response.body)
        response.body = _encode({k: v for k, v in whole.items() if k == "id"})
    return response


def keep(response: web.Response) -> str:
    """Return a response as text for a repeated Idempotency-Key."""
    assert isinstance(response.body, bytes)
    return _encode((response.status, dict(response.headers), response.body.decode())).decode()


def restore(text: str) -> web.Response:
    """Return the response of a repeated request, which says that it is a repeat."""
    status, headers, body = msgspec.json.decode(text, type=tuple[int, dict[str, str], str])
    headers = {"Content-Type": JSON, **headers, "Idempotent-Replayed": "true"}
    return web.Response(status=status, body=body.encode(), headers=headers)
