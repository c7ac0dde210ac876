"""Shows in JSON what a delivery or a webhook waits for."""

from msgspec import UNSET, Struct, UnsetType

from gateway.records.values import dates
from gateway.records.values.schemas import Instant
from outbox.queue.state.waits import Waiting as Held
from outbox.states import WaitReason


class Waiting(Struct, frozen=True, rename="camel"):
    """What holds a delivery, and until when, if that is known.

    `schedule`: its next attempt is later. `retry_after`: its receiver asked for a pause.
    `rate_limit`, `concurrency_limit`: limits of its webhook. `circuit_open`: its webhook fails;
    `until` is the next probe. `paused`, `disabled`: its webhook must be activated.
    `earlier_delivery`: another one of its record comes first. `unreadable`: the secret or the
    headers of its webhook cannot be decrypted.
    """

    reason: WaitReason
    until: Instant | UnsetType = UNSET


def shown_wait(held: Held | None) -> Waiting | None:
    """Return the JSON form; None when nothing holds it."""
    if held is None:
        return None
    return Waiting(held.reason, UNSET if held.until is None else dates.show(held.until))
