"""Describes the events of operational webhooks, which no resource declares."""

from collections.abc import Mapping
from typing import get_args

from gateway.records.values.schemas import ID, INSTANT, Schema, or_null
from gateway.rest.document.schema_parts import reference
from outbox.webhooks import State

_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_STATUS: Schema = {"type": ["integer", "null"]}
_ENDPOINT: Mapping[str, Schema] = {
    "id": ID, "url": _TEXT, "description": or_null(_TEXT),
    "state": reference("EndpointState"), "reason": _TEXT,
    "failures": _COUNT, "failingSince": or_null(INSTANT), "lastSuccessAt": or_null(INSTANT),
    "lastOutcome": or_null(_TEXT), "lastStatus": _STATUS,
}  # fmt: skip

PARTS: Mapping[str, Schema] = {
    "EndpointState": {"type": "string", "enum": [*get_args(State)]},
}
WHEN: Mapping[str, str] = {
    "endpoint.failing": "Ten attempts of a webhook failed in a row: one delivery is retried "
    "periodically, and the others wait. The reason is the outcome of the last attempt, "
    "such as timeout.",
    "endpoint.disabled": "A webhook was disabled, and its events are parked. The reason is gone "
    "(its receiver answered 410) or failing (for five days).",
    "endpoint.recovered": "A webhook that was failing or disabled accepts a delivery again (the "
    "reason is success), or was activated or got another URL (activated).",
    "delivery.exhausted": "The last attempt of a delivery failed. It is given up; replay it in "
    "the console.",
    "person.erased": "A person is erased from records, events and deliveries. Erase the records "
    "in recordIds, too.",
}
DATA: Mapping[str, Mapping[str, Schema]] = {
    "endpoint.failing": _ENDPOINT,
    "endpoint.disabled": _ENDPOINT,
    "endpoint.recovered": _ENDPOINT,
    "delivery.exhausted": {
        "id": ID, "webhookId": ID, "url": _TEXT, "description": or_null(_TEXT), "eventId": ID,
        "event": _TEXT, "recordId": ID, "attempts": _COUNT, "lastOutcome": or_null(_TEXT),
        "lastStatus": _STATUS, "createdAt": INSTANT, "exhaustedAt": INSTANT,
    },
    "person.erased": {
        "id": ID, "recordIds": {"type": "array", "items": ID}, "requestedAt": INSTANT,
        "erasedAt": INSTANT,
    },
}  # fmt: skip
"""The members of `data`, in their order."""
