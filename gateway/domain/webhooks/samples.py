"""Generates sample `data` of each event for test events, from the fields of the catalogue."""

from collections.abc import Mapping
from typing import Any

from gateway.domain.catalogue import EVENTS, RESOURCES
from gateway.records.resource import Field, Resource
from gateway.records.values import dates
from gateway.records.values.schemas import INSTANT
from outbox.durations import DAY, MINUTE
from outbox.events import RecordField
from outbox.queue.state import owner_reports
from outbox.webhooks.operational import NAMES, Name

AHEAD = 14 * DAY
MARK = " (test)"
URL = "https://hooks.example.com/orders"
DESCRIPTION = "Orders (test)"
WEBHOOK = "019a9d1c2f004b7de1a0c3f2"
STATES: Mapping[Name, tuple[str, str, int]] = {
    "endpoint.failing": ("active", "http_5xx", 500),
    "endpoint.disabled": ("disabled", "gone", 410),
    "endpoint.recovered": ("active", "success", 200),
}


def sample(event: str, record_id: str, now: int) -> Mapping[str, Any]:
    """Return the `data` of a test event, with exactly the fields of real events.

    `now` is microseconds UTC. Raises KeyError for a name of no event.
    """
    for name in NAMES:
        if event == name:
            return _operational(name, record_id, now)
    names, resource = EVENTS[event], resource_of(event)
    at = dates.show(now)
    known = {"id": record_id, "createdAt": at, "updatedAt": at}
    known |= resource.known_after.get(event.partition(".")[2], {})
    return {name: known[name] if name in known else _value(resource, name, now) for name in names}


def resource_of(event: str) -> Resource:
    """Return the resource of an event of the catalogue."""
    noun = event.partition(".")[0]
    [resource] = [one for one in RESOURCES if one.noun == noun]
    return resource


def sample_fields(event: str) -> Mapping[str, RecordField]:
    """Return the fields of the record that filters can use beside the sample's `data`.

    The write has changed each of them, except that a delete changes none.
    """
    resource = resource_of(event)
    changed = not event.endswith(".deleted")
    known = resource.known_after.get(event.partition(".")[2], {})
    return {
        name: RecordField(known.get(name, _value(resource, name, 0)), changed)
        for name in resource.filterable
    }


def _operational(event: Name, record_id: str, now: int) -> Mapping[str, Any]:
    """Return the `data` of an event of operational webhooks."""
    if event == "delivery.exhausted":
        return owner_reports.GivenUp(
            delivery_id=record_id, webhook_id=WEBHOOK, url=URL, description=DESCRIPTION,
            event_id="019a9d1c2f004b7de1a0c3f3", event="contact.created",
            record_id="019a9d1c2f004b7de1a0c3f4", attempts=10, outcome="http_5xx", status=500,
            created_at=now - 4320 * MINUTE, finished_at=now,
        ).data()  # fmt: skip
    if event == "person.erased":
        return owner_reports.erased(record_id, ["019a9d1c2f004b7de1a0c3f4"], now - MINUTE, now)
    state, reason, status = STATES[event]
    well = event == "endpoint.recovered"
    return owner_reports.endpoint(
        {
            "id": record_id, "url": URL, "description": DESCRIPTION, "state": state,
            "failures": 0 if well else 10, "failing_since": None if well else now - 5 * MINUTE,
            "last_success_at": now if well else now - 6 * MINUTE,
            "last_outcome": "http_4xx" if status == 410 else reason, "last_status": status,
        },
        reason,
    )  # fmt: skip


def _value(resource: Resource, name: str, now: int) -> Any:
    for derived in resource.derived:
        if derived.name == name:
            return derived.example
    field = resource.named[name]
    if field.shown_example is not None:
        return field.shown_example
    if field.format.shown is INSTANT:
        # Times set by the server are in the past; times set by clients are in the future.
        return dates.show(now + AHEAD if _is_open(field) else now)
    if name == "number":
        return "TEST-0001"
    return f"{field.example}{MARK}" if _is_title(field) else field.example


def _is_open(field: Field) -> bool:
    return field.on_create or field.on_update


def _is_title(field: Field) -> bool:
    schema = field.format.schema
    return field.required and schema.get("type") == "string" and "enum" not in schema
