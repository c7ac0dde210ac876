"""Describes the events of operational webhooks, which no resource declares."""

from collections.abc import Mapping
from typing import get_args

from gateway.records.values.schemas import ID, INSTANT, Schema, or_null
from gateway.rest.document.parts import reference
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
    "endpoint.failing": "Ten attempts of a webhook failed in a row.",
    "endpoint.disabled": "A webhook was disabled: its receiver answered 410, or failed for days.",
    "endpoint.recovered": "A webhook that was failing or disabled delivers again.",
    "delivery.exhausted": "The last attempt of a delivery failed; it is given up.",
    "person.erased": "A person is erased from records, events and deliveries.",
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
