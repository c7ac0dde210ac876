"""What people see of deliveries: their states, a delivery, its event and attempts, a query."""

from dataclasses import dataclass
from typing import Literal, get_args

from outbox.sending.oddities import separated
from outbox.sending.outcome import decides
from outbox.sending.response_body import BodyText, show
from outbox.states import Origin

Shown = Literal[
    "ready", "scheduled", "parked", "in_flight", "held",
    "delivered", "exhausted", "gone", "cancelled", "dead",
]  # fmt: skip
"""The state of a delivery in the API and in metrics.

The stored state, with `ready` split into due, scheduled for later, and parked at a webhook that is
not active.
"""
StateFilter = Shown | Literal["all", "waiting", "failed", "retrying", "failures"]
SHOWN: tuple[Shown, ...] = get_args(Shown)
WAITING: tuple[Shown, ...] = ("ready", "scheduled", "parked")
FAILED: tuple[Shown, ...] = ("exhausted", "gone", "dead")
"""The final states that a receiver or a fault causes."""
FAILURES: tuple[StateFilter, ...] = ("retrying", *FAILED)
"""Deliveries that wait after a failed attempt, and those that failed for good."""
FILTERS: tuple[StateFilter, ...] = (
    "all", "failures", "retrying", "failed", "waiting", "ready", "scheduled", "parked", "held",
    "in_flight", "delivered", "exhausted", "gone", "dead", "cancelled",
)  # fmt: skip
NO_TIME = 2**62
"""Later than every time in microseconds."""
COUNTED = 10_000
"""The waiting deliveries of a webhook are counted up to this number."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery; times are in microseconds UTC, `due_in` in microseconds to the next attempt."""

    id: str
    owner_id: str
    event_id: str
    event: str | None
    webhook_id: str
    origin: Origin
    state: str
    reason: str | None
    retry: bool
    tries: int
    """Attempts that count against the schedule."""
    attempts: int
    record_id: str
    created_at: int
    finished_at: int | None
    last_outcome: str | None
    last_status: int | None
    replayed_by: str | None
    next_at: int
    due_in: int


@dataclass(frozen=True, slots=True)
class Announced:
    """The event of a delivery, with the exact bytes that receivers get."""

    id: str
    name: str
    record_id: str
    record_version: int
    occurred_at: int
    request_id: str | None
    body: bytes | None
    erased_at: int | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request of a delivery: its URL, headers, durations and response."""

    number: int
    kind: str
    outcome: str
    status: int | None
    error: str | None
    """Why it failed, or what was odd about a response that counts: see `failure` and `notes`."""
    started_at: int
    dns_us: int | None
    connect_us: int | None
    tls_us: int | None
    first_byte_us: int | None
    total_us: int
    address: str | None
    url: str
    request_headers: list[tuple[str, str]]
    response_headers: list[tuple[str, str]]
    response_body: bytes | None
    truncated: bool
    place: int | None = None
    """Its place in the chain of the webhook, and its digest; None in older rows."""
    digest: bytes | None = None
    answer_digest: bytes | None = None
    """Stands for a response that was erased with a person."""

    @property
    def failure(self) -> str | None:
        """Return why there is no valid response; None when the status decides."""
        return None if decides(self.outcome, self.status) else self.error

    @property
    def notes(self) -> list[str]:
        """Return what was odd about a response whose status decides."""
        return separated(self.error) if decides(self.outcome, self.status) else []

    @property
    def body(self) -> BodyText | None:
        """Return the body of the response as text; None without a stored response."""
        if self.response_body is None or self.status is None or self.answer_digest is not None:
            return None
        return show(self.response_headers, self.response_body, truncated=self.truncated)


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An attempt that failed, with what it sent: the delivery, its event and its record."""

    delivery_id: str
    event: str | None
    record_id: str | None
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a webhook: its latest deliveries, and those that wait, up to COUNTED."""

    waiting: int
    latest: tuple[Delivery, ...]

    @property
    def tried(self) -> int:
        """Return how many of the latest deliveries had an attempt."""
        return sum(1 for delivery in self.latest if delivery.last_outcome is not None)

    @property
    def delivered(self) -> int:
        """Return how many of the latest deliveries succeeded."""
        return sum(1 for delivery in self.latest if delivery.state == "delivered")


def shown(delivery: Delivery, active: bool) -> Shown:
    """Return the state to show; `active` is whether the webhook is."""
    return shown_as(delivery.state, active=active, later=delivery.due_in > 0)


def shown_as(state: str, *, active: bool, later: bool) -> Shown:
    """Return what a stored state is shown as; `later`: its next attempt is not due yet."""
    if state != "ready":
        return next(one for one in SHOWN if one == state)
    if not active:
        return "parked"
    return "scheduled" if later else "ready"


@dataclass(frozen=True, slots=True)
class DeliveryQuery:
    """Which deliveries; times are those of their creation, in microseconds UTC."""

    only: StateFilter = "all"
    event: str = ""
    status: int | None = None
    since: int = 0
    until: int = NO_TIME

    def matches(self, delivery: Delivery, active: bool) -> bool:
        """Return whether a delivery matches; `active` is whether its webhook is."""
        return (
            self._has_state(delivery, active)
            and self.event in ("", delivery.event)
            and self.status in (None, delivery.last_status)
            and self.since <= delivery.created_at < self.until
        )

    def _has_state(self, delivery: Delivery, active: bool) -> bool:
        if delivery.state == "ready" and self.only in ("retrying", "failures"):
            return delivery.last_outcome is not None
        groups = {"waiting": WAITING, "failed": FAILED, "failures": FAILED}
        states = groups.get(self.only, (self.only,))
        return self.only == "all" or shown(delivery, active) in states
