"""The drain's data about a delivery: its claim, endpoint, capacity and result.

Nothing changes these objects, but those of each delivery are not frozen: creating a frozen one
takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from outbox.database.transaction import Row
from outbox.queue.state.evidence import USUAL, Evidence
from outbox.queue.state.fair_shares import Shares
from outbox.queue.state.policy import Decision
from outbox.sending.outcome import Outcome
from outbox.sending.permission import Permission
from outbox.sending.request import Header
from outbox.states import Origin
from outbox.webhooks import operational

# Concurrent sends that a webhook starts with; one, when its last attempt failed.
FIRST_WINDOW = 2
FAILING_WINDOW = 1

MOST_ATTEMPTS = 1_000_000
"""A number of attempts that only a damaged row reaches."""


@dataclass(slots=True)
class Claimed:
    """A delivery that this worker has claimed, with all data that its request needs."""

    id: str
    owner_id: str
    event_id: str
    webhook_id: str
    origin: Origin
    tries: int
    attempt: int
    retry: bool
    lag_us: int
    claim: str
    event_name: str
    record_id: str
    record_version: int
    occurred_at: int
    request_id: str | None
    traceparent: str | None
    body: bytes | None
    body_digest: str
    erased: bool = False
    probe: bool = False
    """Whether this attempt only finds out whether the receiver is back; it uses no try."""
    ordered: bool = False
    """Whether deliveries of the same record may wait for its end."""
    sequence: int | None = None
    """Its number among the deliveries of its webhook, or that of the delivery that it repeats."""
    repeats: bool = False
    snapshot: str | None = None
    """The job that made its event of the record as it is."""


def claimed(
    event: Row,
    *,
    delivery_id: str,
    webhook_id: str,
    event_id: str,
    origin: Origin,
    claim: str,
    body: bytes | None,
    tries: int = 0,
    attempt: int = 1,
    retry: bool = False,
    lag_us: int = 0,
    erased: bool = False,
    probe: bool = False,
    ordered: bool = False,
    sequence: int | None = None,
    repeats: int | None = None,
) -> Claimed:
    """Return the delivery of `event`, a row with the columns of `events`."""
    about = event["about_id"]
    # Other events about something are those of operational webhooks.
    snapshot = None if about is None or event["name"] in operational.NAMES else about
    return Claimed(
        delivery_id, event["owner_id"], event_id, webhook_id, origin, tries, attempt, retry, lag_us,
        claim, event["name"], event["record_id"], event["record_version"], event["occurred_at"],
        event["request_id"], event["traceparent"], body, event["body_digest"], erased, probe,
        ordered, sequence if repeats is None else repeats, repeats is not None, snapshot,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A webhook as the worker needs it; all its secrets are still encrypted."""

    id: str
    version: int
    url: str
    timeout_ms: int | None
    schedule: str | None
    headers: bytes | None
    secret: bytes
    staged_secret: bytes | None
    old_secret: bytes | None
    old_secret_until: int | None
    failures: int
    signing_keys: str | None = None
    """The encrypted keys of `v1a`, as `signing_keys.of_endpoint` reads them; None without it."""
    certificate: bytes | None = None
    proxy: str | None = None
    thin: bool = False
    oauth2: bytes | None = None
    format: str | None = None
    handshake: int | None = None
    """With a handshake, the rate that its owner limits it to, 0 without one."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The amount of work that a worker can take.

    `slots` counts sends; at most `failing_slots` of them go to webhooks whose last attempt failed,
    and `failing_first` are reserved for these. `windows` has the rest of each webhook's window
    where it differs from a fresh one; it is a live view, read-only here. `body_bytes` limits the
    total size of large bodies. `shares` tells whose turn it is.
    """

    node_id: str
    claim: str
    slots: int
    failing_slots: int
    failing_first: int
    windows: Mapping[str, int]
    body_bytes: int
    shares: Shares = field(default_factory=Shares)


@dataclass(slots=True)
class Result:
    """A finished attempt and its decision; without an outcome, no request was sent."""

    delivery: Claimed
    decision: Decision
    outcome: Outcome | None
    started_at: int
    request_headers: Sequence[str | Header]
    """As `kept` returns them; empty without a request."""
    url: str
    node_id: str
    needed: Evidence = USUAL
    """The evidence that disables its webhook after days of failures."""
    permission: Permission | None = None
    """What the receiver answered to a handshake before this attempt."""

    @property
    def unreadable(self) -> bool:
        """Whether its webhook could not sign: see `policy.parked`."""
        return self.outcome is None and self.decision.webhook_wait_us is not None
