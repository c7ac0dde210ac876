"""The drain's data about a delivery: its claim, endpoint, capacity and result.

Nothing changes these objects, but a `Result` is not frozen: creating a frozen dataclass takes ten
times as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

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


class ClaimedEvent(Struct, frozen=True, kw_only=True):
    """What a delivery carries: its event, as it was stored."""

    id: str
    name: str
    record_id: str
    record_version: int
    occurred_at: int
    request_id: str | None
    traceparent: str | None
    body: bytes | None
    body_digest: str
    erased: bool = False
    snapshot: str | None = None
    """The job that made it of the record as it is."""


class ClaimedAttempt(Struct, frozen=True, kw_only=True):
    """The attempt that a claim is for."""

    number: int = 1
    tries: int = 0
    """The attempts so far that used a try."""
    retry: bool = False
    probe: bool = False
    """Whether it only finds out whether the receiver is back; it uses no try."""
    lag_us: int = 0
    """Since its delivery was due."""
    waited_us: int = 0
    """Since its event was stored; on SQLite the same as the lag."""


FIRST = ClaimedAttempt()


class Claimed(Struct, kw_only=True):
    """A delivery that this worker has claimed, with all data that its request needs."""

    id: str
    owner_id: str
    webhook_id: str
    origin: Origin
    claim: str
    event: ClaimedEvent
    attempt: ClaimedAttempt = FIRST
    ordered: bool = False
    """Whether deliveries of the same record may wait for its end."""
    sequence: int | None = None
    """Its number among the deliveries of its webhook, or that of the delivery that it repeats."""
    repeats: bool = False


def event_of(row: Row, event_id: str, body: bytes | None, *, erased: bool = False) -> ClaimedEvent:
    """Return the event of a row with the columns of `events`."""
    about, name = row["about_id"], row["name"]
    return ClaimedEvent(
        id=event_id, name=name, record_id=row["record_id"], record_version=row["record_version"],
        occurred_at=row["occurred_at"], request_id=row["request_id"],
        traceparent=row["traceparent"], body=body, body_digest=row["body_digest"], erased=erased,
        # Other events about something are those of operational webhooks.
        snapshot=None if about is None or name in operational.NAMES else about,
    )  # fmt: skip


def claimed_of(row: Row, claim: str, body: bytes | None, attempt: ClaimedAttempt) -> Claimed:
    """Return the delivery of a row with the columns of `deliveries` and of `events`."""
    repeated = row["repeats"]
    return Claimed(
        id=row["id"], owner_id=row["owner_id"], webhook_id=row["webhook_id"], origin=row["origin"],
        claim=claim, attempt=attempt, ordered=bool(row["ordered"]),
        event=event_of(row, row["event_id"], body, erased=row["erased_at"] is not None),
        sequence=row["sequence"] if repeated is None else repeated, repeats=repeated is not None,
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


NO_ROOM = Capacity(
    node_id="", claim="", slots=0, failing_slots=0, failing_first=0, windows={}, body_bytes=0
)
"""A fan-out that makes deliveries and claims none."""


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
