"""Converts records to their JSON form and ETag, and writes the responses to writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
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


class View(Struct, frozen=True):
    """A record in its JSON form, and the ETag that changes with it."""

    record_id: str
    shown: Struct | Mapping[str, Any]
    etag: str
    """With quotes."""

    @property
    def members(self) -> dict[str, Any]:
        """The JSON members by name, without unset ones."""
        members: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self.shown))
        return members


@lru_cache(maxsize=256)
def shape(resource: Resource) -> type[Struct]:
    """Return the struct of a record's JSON members; its encoder omits members with the default."""
    members: list[tuple[str, Any, Any]] = [("id", Any, None)]
    # Null differs from the default of a field that is always shown.
    members += [(f.name, Any, UNSET if f.always else None) for f in resource.fields]
    members += [(d.name, Any, UNSET) for d in resource.derived if d.name not in resource.named]
    members += [("createdAt", Any, None), ("updatedAt", Any, None)]
    return msgspec.defstruct(resource.noun.capitalize(), members, omit_defaults=True, frozen=True)


def view(record: Record) -> View:
    """Return the JSON form of a record and its ETag."""
    [members] = shown(record.resource, [record])
    return View(record.id, members, quoted(record.etag))


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


@dataclass(frozen=True, slots=True)
class Response:
    """The complete response to a write."""

    status: int
    headers: dict[str, str]
    body: bytes
    replayed: bool = False


def respond_to_write(caller: Actor, response: Response) -> web.Response:
    """Return the response to a write; without the scope `read` its body is the id alone.

    The kept response is complete; each repeat shows what its own credential can read.
    """
    if "read" in caller.scopes:
        return respond(response)
    whole: dict[str, Any] = msgspec.json.decode(response.body)
    shown = {k: v for k, v in whole.items() if k == "id"}
    return respond(replace(response, body=msgspec.json.encode(shown)))


def respond(response: Response) -> web.Response:
    """Return the HTTP response, with Idempotent-Replayed when it is a repeat."""
    headers = {"Content-Type": JSON, **response.headers}
    if response.replayed:
        headers["Idempotent-Replayed"] = "true"
    return web.Response(status=response.status, body=response.body, headers=headers)
