"""A sample of each event's `data`, for test events: the fields of the catalogue, made-up values."""

from collections.abc import Mapping
from typing import Any

from gateway.domain.catalogue import EVENTS, RESOURCES
from gateway.records.resource import Field, Resource
from gateway.records.values import dates
from gateway.records.values.schemas import INSTANT

AHEAD = 14 * dates.DAY
MARK = " (test)"


def sample(event: str, record_id: str, now: int) -> Mapping[str, Any]:
    """The `data` of a test event: the fields that the event's real ones have, and no other.

    `now` is microseconds UTC. KeyError for a name that is not in the catalogue.
    """
    wanted, noun = EVENTS[event], event.partition(".")[0]
    [resource] = [one for one in RESOURCES if one.noun == noun]
    at = dates.show(now)
    known = {"id": record_id, "createdAt": at, "updatedAt": at}
    return {name: known[name] if name in known else _value(resource, name, now) for name in wanted}


def _value(resource: Resource, name: str, now: int) -> Any:
    for derived in resource.derived:
        if derived.name == name:
            return derived.example
    field = resource.named[name]
    if field.format.shown is INSTANT:
        # What is only ever set by the server has happened; what people set is ahead.
        return dates.show(now + AHEAD if _is_open(field) else now)
    if field.made and isinstance(field.example, str):
        return "TEST-0001"
    return f"{field.example}{MARK}" if _is_title(field) else field.example


def _is_open(field: Field) -> bool:
    return field.on_create or field.on_update


def _is_title(field: Field) -> bool:
    schema = field.format.schema
    return field.required and schema.get("type") == "string" and "enum" not in schema
