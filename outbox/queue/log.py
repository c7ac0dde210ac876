"""Reading the delivery log: pages of a webhook's deliveries, one with its attempts, its health."""

import json
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar, get_args

from outbox.database.transaction import Row, Tx
from outbox.queue import lanes
from outbox.states import Origin

T = TypeVar("T")
Shown = Literal[
    "ready", "scheduled", "parked", "in_flight", "held",
    "delivered", "exhausted", "gone", "cancelled", "dead",
]  # fmt: skip
"""A delivery's state as people and metrics know it: the stored one, but `ready` by its meaning:
due, with its time ahead, or at a webhook that is not active."""
Filter = Shown | Literal["all", "waiting", "failed"]
SHOWN: tuple[Shown, ...] = get_args(Shown)
WAITING: tuple[Shown, ...] = ("ready", "scheduled", "parked")
FAILED: tuple[Shown, ...] = ("exhausted", "gone", "dead")
"""The ends that a receiver or a fault has brought about, and nobody asked for."""
FILTERS: tuple[Filter, ...] = ("all", "waiting", "failed", *SHOWN)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery; times in microseconds UTC, `due_in` microseconds until its next attempt."""

    id: str
    owner_id: str
    event_id: str
    event: str | None
    webhook_id: str
    origin: Origin
    state: str
    reason: str | None
    retry: bool
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
    """The event behind a delivery, with the exact bytes that receivers get."""

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
    """One request of a delivery: what was sent where, how long it took, what came back."""

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


@dataclass(frozen=True, slots=True)
class Page:
    """One page; `after` continues it, None at the end."""

    deliveries: list[Delivery]
    after: str | None


@dataclass(frozen=True, slots=True)
class Health:
    """How a webhook fares: what waits (counted up to CAP) and its latest deliveries."""

    waiting: int
    latest: tuple[Delivery, ...]

    @property
    def tried(self) -> int:
        """How many of the latest had an answer or the lack of one."""
        return sum(1 for delivery in self.latest if delivery.last_outcome is not None)

    @property
    def delivered(self) -> int:
        """How many of the latest were delivered."""
        return sum(1 for delivery in self.latest if delivery.state == "delivered")


CAP = 10_000

COLUMNS = """d.id, d.owner_id, d.event_id, e.name as event, d.webhook_id, d.origin, d.state,
  d.reason, d.retry, d.attempts, d.record_id, d.created_at, d.finished_at, d.last_outcome,
  d.last_status, d.replayed_by, d.next_at, d.next_at - due_now() as due_in"""

# Newest first. The index is named for SQLite, which without statistics may walk the whole log
# for a state that is rare in it.
NEWEST = """
select {columns} from deliveries d /*sqlite indexed by {index}*/
left join events e on e.id = d.event_id
where d.webhook_id = $1 and d.id < $2 and {state} order by d.id desc limit $3
"""

# What waits, soonest first: one range of the claim's own index for first attempts and retries each.
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
    """A page of a webhook's deliveries: newest first, or the soonest due first of those waiting.

    `after` is where the page before ended; anything else in it starts at the beginning.
    """
    if only == "waiting" or only in WAITING:
        return await _soonest(tx, webhook_id, only, after, size)
    rows: list[Row] = []
    for one_of in FAILED if only == "failed" else (only,):
        index, state = RANGES[one_of]
        rows += await tx.all(
            NEWEST.format(columns=COLUMNS, index=index, state=state),
            webhook_id, after or "~", size + 1,
        )  # fmt: skip
    rows.sort(key=lambda row: str(row["id"]), reverse=True)
    found = [_made(Delivery, row) for row in rows[:size]]
    return Page(found, found[-1].id if len(rows) > size else None)


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
    rows = [
        _made(Delivery, row)
        for retry in (False, True)
        for row in await tx.all(statement, webhook_id, start, last, size + 1, retry, end)
    ]
    rows.sort(key=lambda delivery: (delivery.next_at, delivery.id))
    found = rows[:size]
    more = f"{found[-1].next_at}-{found[-1].id}" if len(rows) > size else None
    return Page(found, more)


async def one(tx: Tx, delivery_id: str) -> Delivery | None:
    """The delivery of this id, whoever owns it."""
    row = await tx.one(
        f"""
        select {COLUMNS} from deliveries d left join events e on e.id = d.event_id where d.id = $1
        """,
        delivery_id,
    )
    return None if row is None else _made(Delivery, row)


async def event(tx: Tx, event_id: str) -> Announced | None:
    """The event of this id; None when retention has taken it."""
    row = await tx.one(
        """
        select id, name, record_id, record_version, occurred_at, request_id, body, erased_at
        from events where id = $1
        """,
        event_id,
    )
    return None if row is None else _made(Announced, row)


# Named, so that a newer schema changes nothing under this program.
_ATTEMPT = ", ".join(column.name for column in fields(Attempt))


async def attempts(tx: Tx, delivery_id: str) -> list[Attempt]:
    """The attempts of a delivery, the latest first."""
    rows = await tx.all(
        f"select {_ATTEMPT} from attempts where delivery_id = $1 order by number desc", delivery_id
    )
    return [_made(Attempt, row) for row in rows]


async def siblings(tx: Tx, delivery: Delivery) -> list[Delivery]:
    """Other deliveries of the same event to the same webhook: its original and its replays."""
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
    return [_made(Delivery, row) for row in rows]


async def health(tx: Tx, webhook_id: str, latest: int = 30) -> Health:
    """What waits and the `latest` deliveries of a webhook."""
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


def _made(kind: type[T], row: Row) -> T:
    columns = fields(kind)  # type: ignore[arg-type] # each of them is a dataclass
    values: dict[str, Any] = {column.name: row[column.name] for column in columns}
    for name in ("retry", "truncated"):
        if name in values:
            values[name] = bool(values[name])
    for name in ("request_headers", "response_headers"):
        if name in values:
            values[name] = [tuple(pair) for pair in json.loads(values[name] or "[]")]
    return kind(**values)
