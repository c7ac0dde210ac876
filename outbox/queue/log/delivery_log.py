"""Read the delivery log: pages of a webhook's deliveries, one delivery, attempts and health."""

import json
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar, get_args

from outbox.database.transaction import Row, Tx
from outbox.queue.state import lanes
from outbox.sending.request import restored
from outbox.states import Origin

T = TypeVar("T")
Shown = Literal[
    "ready", "scheduled", "parked", "in_flight", "held",
    "delivered", "exhausted", "gone", "cancelled", "dead",
]  # fmt: skip
"""The state of a delivery in the API and in metrics.

The stored state, with `ready` split into due, scheduled for later, and parked at a webhook that is
not active.
"""
Filter = Shown | Literal["all", "waiting", "failed"]
SHOWN: tuple[Shown, ...] = get_args(Shown)
WAITING: tuple[Shown, ...] = ("ready", "scheduled", "parked")
FAILED: tuple[Shown, ...] = ("exhausted", "gone", "dead")
"""The final states that a receiver or a fault causes."""
FILTERS: tuple[Filter, ...] = ("all", "waiting", "failed", *SHOWN)
LATEST = 25
"""Attempts of a delivery that are read in full: a receiver that is down gets hundreds of probes."""


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


@dataclass(frozen=True, slots=True)
class Page:
    """One page; `after` is the start of the next page, None at the end."""

    deliveries: list[Delivery]
    after: str | None


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a webhook: waiting deliveries (counted up to CAP) and the latest deliveries."""

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


CAP = 10_000

COLUMNS = """d.id, d.owner_id, d.event_id, e.name as event, d.webhook_id, d.origin, d.state,
  d.reason, d.retry, d.tries, d.attempts, d.record_id, d.created_at, d.finished_at, d.last_outcome,
  d.last_status, d.replayed_by, d.next_at, d.next_at - due_now() as due_in"""

_ONE = f"select {COLUMNS} from deliveries d left join events e on e.id = d.event_id where d.id = $1"
# Newest first. The SQLite query names its index, because without statistics SQLite may read the
# whole log to find a rare state.
NEWEST = """
select {columns} from deliveries d /*sqlite indexed by {index}*/
left join events e on e.id = d.event_id
where d.webhook_id = $1 and d.id < $2 and {state} order by d.id desc limit $3
"""

# Waiting deliveries, soonest first: one range of the claim's index each for first attempts and
# retries.
SOONEST = """
select {columns} from deliveries d /*sqlite indexed by deliveries_ready*/
left join events e on e.id = d.event_id
where d.webhook_id = $1 and d.state = 'ready' and d.retry = $5
  and d.next_at >= $2 and (d.next_at > $2 or d.id > $3) and d.next_at <= $6
order by d.next_at, d.id limit $4
"""
END_OF_TIME = 2**62

ENDED = "d.state in ('exhausted', 'gone', 'cancelled', 'dead') and d.state = '{}'"
RANGES: dict[Filter, tuple[str, str]] = {
    "all": ("deliveries_log", "d.state is not null"),
    "in_flight": ("deliveries_claimed", "d.state = 'in_flight'"),
    "held": ("deliveries_held", "d.state = 'held'"),
    "delivered": ("deliveries_log", "d.state = 'delivered'"),
    "exhausted": ("deliveries_ended", ENDED.format("exhausted")),
    "gone": ("deliveries_ended", ENDED.format("gone")),
    "cancelled": ("deliveries_ended", ENDED.format("cancelled")),
    "dead": ("deliveries_ended", ENDED.format("dead")),
}


async def page(
    tx: Tx, webhook_id: str, only: Filter = "all", after: str = "", size: int = 50
) -> Page:
    """Return a page of a webhook's deliveries: newest first, or waiting ones by due time.

    `after` is the end of the previous page; an invalid value starts at the beginning.
    """
    if only == "waiting" or only in WAITING:
        return await _soonest(tx, webhook_id, only, after, size)
    rows: list[Row] = []
    for state_filter in FAILED if only == "failed" else (only,):
        index, state = RANGES[state_filter]
        rows += await tx.all(
            NEWEST.format(columns=COLUMNS, index=index, state=state),
            webhook_id, after or "~", size + 1,
        )  # fmt: skip
    rows.sort(key=lambda row: str(row["id"]), reverse=True)
    deliveries = [_from_row(Delivery, row) for row in rows[:size]]
    return Page(deliveries, deliveries[-1].id if len(rows) > size else None)


async def _soonest(tx: Tx, webhook_id: str, only: Filter, after: str, size: int) -> Page:
    moment, _, last = after.partition("-")
    start = int(moment) if moment.isascii() and moment.isdigit() and len(moment) < 19 else 0
    end = END_OF_TIME
    if only != "waiting":
        webhook = await tx.one("select state from webhooks where id = $1", webhook_id)
        active = webhook is not None and webhook["state"] == "active"
        if active == (only == "parked"):
            return Page([], None)
        due = await lanes.due_now(tx)
        if only == "ready":
            end = due
        elif only == "scheduled" and start <= due:
            start, last = due + 1, ""
    statement = SOONEST.format(columns=COLUMNS)
    deliveries = [
        _from_row(Delivery, row)
        for retry in (False, True)
        for row in await tx.all(statement, webhook_id, start, last, size + 1, retry, end)
    ]
    deliveries.sort(key=lambda delivery: (delivery.next_at, delivery.id))
    shown = deliveries[:size]
    more = f"{shown[-1].next_at}-{shown[-1].id}" if len(deliveries) > size else None
    return Page(shown, more)


async def one(tx: Tx, delivery_id: str) -> Delivery | None:
    """Return the delivery of this id, of any owner."""
    row = await tx.one(_ONE, delivery_id)
    return None if row is None else _from_row(Delivery, row)


def delivery_of(row: Row) -> Delivery:
    """Return the delivery of a row with COLUMNS."""
    return _from_row(Delivery, row)


async def event(tx: Tx, event_id: str) -> Announced | None:
    """Return the event of this id; None after retention has removed it."""
    row = await tx.one(f"select {_EVENT} from events where id = $1", event_id)
    return None if row is None else _from_row(Announced, row)


# Named columns, so that a newer schema does not change the result.
_EVENT = ", ".join(column.name for column in fields(Announced))
_ATTEMPT = ", ".join(column.name for column in fields(Attempt))


async def attempts(tx: Tx, delivery_id: str) -> list[Attempt]:
    """Return the LATEST attempts of a delivery, the last one first."""
    rows = await tx.all(
        f"select event_id, {_ATTEMPT} from attempts where delivery_id = $1"
        f" order by number desc limit {LATEST}",
        delivery_id,
    )
    return [_from_row(Attempt, row) for row in rows]


async def attempted(tx: Tx, delivery_id: str) -> int:
    """Return how many attempts of a delivery the log has."""
    row = await tx.one("select count(*) as n from attempts where delivery_id = $1", delivery_id)
    return 0 if row is None else int(row["n"])


async def siblings(tx: Tx, delivery: Delivery) -> list[Delivery]:
    """Return other deliveries of the event to the same webhook: the original and the replays."""
    rows = await tx.all(
        f"""
        select {COLUMNS} from deliveries d left join events e on e.id = d.event_id
        where d.id <> $3 and d.id in (
          select id from deliveries
          where event_id = $1 and webhook_id = $2 and origin = 'event'
          union all
          select id from deliveries
          where event_id = $1 and webhook_id = $2 and origin <> 'event')
        order by d.id desc limit 20
        """,
        delivery.event_id, delivery.webhook_id, delivery.id,
    )  # fmt: skip
    return [_from_row(Delivery, row) for row in rows]


async def health(tx: Tx, webhook_id: str, latest: int = 30) -> Health:
    """Return the number of waiting deliveries and the `latest` deliveries of a webhook."""
    waiting = await tx.one(
        """
        select count(*) as waiting from (
          select 1 as one from deliveries /*sqlite indexed by deliveries_ready*/
          where webhook_id = $1 and state = 'ready' limit $2) as ready
        """,
        webhook_id, CAP,
    )  # fmt: skip
    recent = await page(tx, webhook_id, "all", "", latest)
    return Health(0 if waiting is None else int(waiting["waiting"]), tuple(recent.deliveries))


def _from_row(kind: type[T], row: Row) -> T:
    columns = fields(kind)  # type: ignore[arg-type] # each of them is a dataclass
    values: dict[str, Any] = {column.name: row[column.name] for column in columns}
    for name in ("retry", "truncated"):
        if name in values:
            values[name] = bool(values[name])
    if "response_headers" in values:
        values["response_headers"] = [
            tuple(pair) for pair in json.loads(values["response_headers"] or "[]")
        ]
        values["request_headers"] = restored(
            row["request_headers"], row["event_id"], row["number"], row["started_at"]
        )
    return kind(**values)
