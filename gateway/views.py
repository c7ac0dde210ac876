"""A stored record as its owner sees it."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from gateway import dates
from gateway.resource import SYSTEM_COLUMNS, Resource
from gateway.store import Record

_FIRST = len(SYSTEM_COLUMNS)
_VERSION = SYSTEM_COLUMNS.index("version")
_CREATED_AT = SYSTEM_COLUMNS.index("created_at")
_UPDATED_AT = SYSTEM_COLUMNS.index("updated_at")


class View(Struct, frozen=True):
    """A record in its JSON form, and the tag that changes whenever that does."""

    record_id: str
    shown: Struct
    etag: str

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


def view(resource: Resource, record: Record, now: int, zone: str) -> View:
    """The record and its tag. `zone` serves derived fields."""
    [found] = shown(resource, [record], now, zone)
    tag = str(record[_VERSION])
    for derived in resource.derived:
        value, field = getattr(found, derived.name), resource.named.get(derived.name)
        if field is None:
            tag += f"-{derived.name}" if value else ""
        elif value != record[resource.position[field.column]]:
            tag += f"-{value}"
    return View(record[0], found, f'"{tag}"')


def shown(resource: Resource, records: Sequence[Record], now: int, zone: str) -> list[Struct]:
    """The members of each record; unset fields are left out, unless declared otherwise."""
    make, shows, end = shape(resource), resource.shows, _FIRST + len(resource.fields)
    found = []
    for record in records:
        values = list(record)
        for position, show in shows:
            if (value := values[position]) is not None:
                values[position] = show(value)
        fields = values[_FIRST:end]
        if resource.derived:
            _derive(fields, resource, record, now, zone)
        created_at, updated_at = values[_CREATED_AT], values[_UPDATED_AT]
        found.append(
            make(
                values[0],
                *fields,
                dates.show(created_at),
                None if updated_at is None else dates.show(updated_at),
            )
        )
    return found


def _derive(fields: list[Any], resource: Resource, record: Record, now: int, zone: str) -> None:
    """Put what is derived after `fields`, or in the place of the field that it stands for."""
    stored = dict(zip(resource.columns, record, strict=True))
    for wanted in resource.derived:
        value, field = wanted.of(stored, now, zone), resource.named.get(wanted.name)
        if field is None:
            fields.append(value)
        else:
            fields[resource.position[field.column] - _FIRST] = value
