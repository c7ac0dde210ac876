"""Generates sample `data` of each event for test events, from the fields of the catalogue."""

from collections.abc import Mapping
from typing import Any

from gateway.domain.catalogue import EVENTS, RESOURCES
from gateway.domain.webhooks import operational_samples
from gateway.records.resource import Field, Resource
from gateway.records.values import dates
from gateway.records.values.schemas import INSTANT
from outbox.webhooks.operational import NAMES

AHEAD = 14 * dates.DAY
MARK = " (test)"


def sample(event: str, record_id: str, now: int) -> Mapping[str, Any]:
    """Return the `data` of a test event, with exactly the fields of real events.

    `now` is microseconds UTC. Raises KeyError for a name of no event.
    """
    for name in NAMES:
        if event == name:
            return operational_samples.sample(name, record_id, now)
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
        # Times set by the server are in the past; times set by clients are in the future.
        return dates.show(now + AHEAD if _is_open(field) else now)
    if field.made and isinstance(field.example, str):
        return "TEST-0001"
    return f"{field.example}{MARK}" if _is_title(field) else field.example


def _is_open(field: Field) -> bool:
    return field.on_create or field.on_update


def _is_title(field: Field) -> bool:
    schema = field.format.schema
    return field.required and schema.get("type") == "string" and "enum" not in schema
