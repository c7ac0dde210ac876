"""The JSON form of a delivery: in lists, alone and after its replay."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from gateway.records.values import dates
from gateway.records.values.schemas import Id, Instant
from gateway.rest.shown_waits import Waiting, shown_wait
from outbox.queue.log import delivery_types as log
from outbox.queue.state.waits import Waiting as Held


class Delivery(Struct, frozen=True, rename="camel"):
    """One event for one webhook.

    `event` is absent when the event is past its retention. `nextAttemptAt` is set while the
    delivery waits for a known time at an active webhook, `waiting` while something holds it.
    """

    id: Id
    event_id: Id
    webhook_id: Id
    record_id: Id
    state: str
    origin: str
    attempt_count: int
    created_at: Instant
    event: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    last_outcome: str | UnsetType = UNSET
    last_status: int | UnsetType = UNSET
    next_attempt_at: Instant | UnsetType = UNSET
    finished_at: Instant | UnsetType = UNSET
    waiting: Waiting | UnsetType = UNSET


class DeliveryWarning(Struct, frozen=True, rename="camel"):
    """What a client should know of a request that succeeded.

    `delivery_waiting`: the replayed delivery, `deliveryId`, has not ended; its receiver gets the
    event from both.
    """

    code: Literal["delivery_waiting"]
    delivery_id: Id


class ReplayedDelivery(Delivery, frozen=True, kw_only=True, rename="camel"):
    """A new delivery of a replay."""

    warnings: list[DeliveryWarning] = []


TWICE: Literal["delivery_waiting"] = "delivery_waiting"


def members_of(
    delivery: log.Delivery, active: bool, now: int, waiting: Held | None
) -> dict[str, Any]:
    """Return the members of a delivery's struct; `active` is whether its webhook is."""
    state = log.shown(delivery, active)
    next_at: int | None = None
    if state in ("ready", "scheduled"):
        next_at = now + max(delivery.due_in, 0) if waiting is None else waiting.until
    times = {"finished_at": delivery.finished_at, "next_attempt_at": next_at}
    optional = {
        "event": delivery.event,
        "reason": delivery.reason,
        "last_outcome": delivery.last_outcome,
        "last_status": delivery.last_status,
        "waiting": shown_wait(waiting),
        **{name: None if at is None else dates.show(at) for name, at in times.items()},
    }
    return {
        "id": delivery.id, "event_id": delivery.event_id, "webhook_id": delivery.webhook_id,
        "record_id": delivery.record_id, "state": state, "origin": delivery.origin,
        "attempt_count": delivery.attempts, "created_at": dates.show(delivery.created_at),
        **{name: value for name, value in optional.items() if value is not None},
    }  # fmt: skip
