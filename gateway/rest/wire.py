"""Records as the REST door shows them: JSON members, and the ETag beside them."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from gateway.records.record import CREATED_AT, ID, UPDATED_AT, Record
from gateway.records.resource import SYSTEM_COLUMNS, Resource
from gateway.records.values import dates

_FIRST = len(SYSTEM_COLUMNS)


class View(Struct, frozen=True):
    """A record in its JSON form, and the tag that changes whenever that does."""

    record_id: str
    shown: Struct
    etag: str
    """With its quotes."""

    @property
    def members(self) -> dict[str, Any]:
        """The JSON members by name; what is unset is not among them."""
        members: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self.shown))
        return members


@lru_cache(maxsize=256)
def shape(resource: Resource) -> type[Struct]:
    """The members of a record in order. Its encoder leaves out what equals its default."""
    members: list[tuple[str, Any, Any]] = [("id", Any, None)]
    # Null differs from the default of a field that is always shown.
    members += [(f.name, Any, UNSET if f.always else None) for f in resource.fields]
    members += [(d.name, Any, UNSET) for d in resource.derived if d.name not in resource.named]
    members += [("createdAt", Any, None), ("updatedAt", Any, None)]
    return msgspec.defstruct(resource.noun.capitalize(), members, omit_defaults=True, frozen=True)


def view(record: Record) -> View:
    """The record and its tag."""
    [found] = shown(record.resource, [record])
    return View(record.id, found, quoted(record.etag))


def quoted(etag: str) -> str:
    """A tag as the header ETag has it."""
    return f'"{etag}"'


def shown(resource: Resource, records: Sequence[Record]) -> list[Struct]:
    """The members of each record; unset fields are left out, unless declared otherwise."""
    make, shows, end = shape(resource), resource.shows, _FIRST + len(resource.fields)
    found = []
    for record in records:
        values = list(record.row)
        for position, show in shows:
            if (value := values[position]) is not None:
                values[position] = show(value)
        fields = values[_FIRST:end]
        for wanted, value in zip(resource.derived, record.derived, strict=True):
            field = resource.named.get(wanted.name)
            if field is None:
                fields.append(value)
            else:
                fields[resource.position[field.column] - _FIRST] = value
        updated_at = values[UPDATED_AT]
        found.append(
            make(
                values[ID],
                *fields,
                dates.show(values[CREATED_AT]),
                None if updated_at is None else dates.show(updated_at),
            )
        )
    return found
