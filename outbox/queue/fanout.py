"""Fan out: give each committed event the next seq and one delivery per subscribed webhook.

One fan-out runs at a time in the whole installation, so that no event gets a seq late. It waits for
no lock, so that no webhook and no node can block it.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from outbox.database import sql
from outbox.database.sql import IDS, ITEMS, items
from outbox.database.transaction import Row, Tx
from outbox.queue import circuits, figures, lanes, snapshots
from outbox.queue.deliveries import FIRST_WINDOW, Capacity, Claimed, Endpoint, claimed
from outbox.queue.filters import Filters
from outbox.queue.loading import ENDPOINT, endpoint_of
from outbox.queue.snapshots import Snapshot
from outbox.states import Origin
from outbox.webhooks import conditions, subscription
from outbox.webhooks.conditions import Condition

EVENTS_AT_ONCE = {"sqlite": 125, "postgres": 500}
DELIVERIES_AT_ONCE = {"sqlite": 250, "postgres": 5_000}
"""The limits of one round; on SQLite the event loop runs nothing else meanwhile."""
PRECLAIMED_BYTES = 4 * 1024
"""Maximum size of a body that fan-out loads for deliveries it claims at once."""
UNREADABLE = "the webhook's list of events is damaged"
UNJUDGED = "the webhook's conditions are damaged"

log = structlog.get_logger("outbox")

# Another node that fans out now handles these events too, so this node does not wait.
TURN = "select /*sqlite true*/ /*postgres pg_try_advisory_xact_lock(7201965)*/ as mine"

UNSEEN = f"""
select pos, id, owner_id, name, record_id, record_version, webhook_id, occurred_at, request_id,
  traceparent, body_digest, about_id, /*sqlite null*/ /*postgres cast(xid as text)*/ as xid,
  case when length(body) <= {PRECLAIMED_BYTES} then body end as body
from events where seq is null order by pos
limit /*sqlite {EVENTS_AT_ONCE["sqlite"]}*/ /*postgres {EVENTS_AT_ONCE["postgres"]}*/
"""

# The mark too: after a start with the clock set back, deliveries made here must still be due.
NEXT_SEQ = """
update outbox_state set seq = seq + $1
  /*sqlite , due_mark = max(due_mark, due_now())*/
where id = 1 returning seq, due_now() as due
"""
GIVE_SEQ = f"""
update events set seq = s.seq_given
from (
  select cast(value ->> 0 as bigint) as place, cast(value ->> 1 as bigint) as seq_given
  from {ITEMS}) as s
where events.pos = s.place
"""

# A lane with due deliveries claims nothing ahead of its queue.
WEBHOOKS = f"""
select {ENDPOINT}, w.owner_id, w.events, w.conditions, w.ordered, w.since_snapshot,
  /*sqlite w.since_pos*/ /*postgres 0*/ as since_pos,
  w.state = 'active' and l.failing = false and l.wait_until <= (select due_now())
    and not exists (select 1 from deliveries d where d.webhook_id = w.id and d.state = 'ready'
      and d.retry = false and d.next_at <= (select due_now()))
    and not exists (select 1 from deliveries d where d.webhook_id = w.id and d.state = 'ready'
      and d.retry = true and d.next_at <= (select due_now())) as idle
from webhooks w join lanes l on l.webhook_id = w.id
where w.owner_id in {IDS} order by w.id
"""

COLUMNS = (
    "id", "owner_id", "event_id", "webhook_id", "origin", "state", "reason", "retry", "next_at",
    "tries", "attempts", "claim", "node_id", "record_id", "seq", "created_at", "finished_at",
)  # fmt: skip
IN_LINE = (*COLUMNS, "ordered")
ONCE = "on conflict (event_id, webhook_id) where origin = 'event' do nothing"


@dataclass(frozen=True, slots=True)
class Announced:
    """An event of a round, with the number of its deliveries."""

    event_id: str
    name: str
    record_id: str
    request_id: str | None
    traceparent: str | None
    seq: int
    deliveries: int


@dataclass(frozen=True, slots=True)
class FannedOut:
    """The result of one round: its events, and counts per event name.

    Counted are events, their deliveries, and those claimed at once. `more`: events are left.
    `turned_away`: another node is fanning out. `noted`: some lanes were locked and need another
    look. `dead` counts deliveries that ended at once. `ready` are webhooks with deliveries that
    were not claimed. `left_out` counts, by event, what the conditions of webhooks left out.
    """

    events: Mapping[str, int] = field(default_factory=dict)
    created: Mapping[str, int] = field(default_factory=dict)
    claimed: Sequence[Claimed] = ()
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    dead: Sequence[str] = ()
    more: bool = False
    turned_away: bool = False
    noted: bool = False
    announced: Sequence[Announced] = ()
    ready: Collection[str] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)

    def preclaimed(self) -> Counter[str]:
        """Return how many deliveries of each webhook were claimed on creation."""
        return Counter(delivery.webhook_id for delivery in self.claimed)


@dataclass(slots=True)
class _Subscriber:
    """A webhook during one round."""

    row: Row
    names: frozenset[str] | None
    """None for a damaged list of events."""
    conditions: Sequence[Condition] | None
    """None for damaged conditions."""
    since: Snapshot | None
    """The snapshot of its creation on PostgreSQL, while it still matters."""
    made: int = 0
    waiting: bool = False

    @property
    def id(self) -> str:
        return str(self.row["id"])


class _Round:
    """The deliveries of one round."""

    def __init__(self, tx: Tx, capacity: Capacity, due: int) -> None:
        self._tx = tx
        self._capacity = capacity
        self.due = due
        self._slots = capacity.slots
        self.rows: list[tuple[object, ...]] = []
        self.lined: list[tuple[object, ...]] = []
        """The rows of ordered webhooks."""
        self.followers: dict[str, dict[str, str]] = {}
        """Of each ordered webhook, one new delivery of each record."""
        self.claimed: list[Claimed] = []
        self.endpoints: dict[str, Endpoint] = {}
        self.dead: list[str] = []
        self.ready: set[str] = set()
        self.tests: list[tuple[str, str]] = []
        self.created: Counter[str] = Counter()

    def add(self, event: Row, seq: int, to: _Subscriber) -> None:
        """Add one delivery of `event`: claimed, ready behind the lane's queue, held, or dead."""
        delivery_id = self._tx.new_id()
        origin: Origin = "test" if event["webhook_id"] and not event["about_id"] else "event"
        state, reason = "ready", None
        if to.names is None or to.conditions is None:
            state, reason = "dead", UNREADABLE if to.names is None else UNJUDGED
            self.dead.append(to.id)
        elif to.row["ordered"] and origin == "event":
            state = "held"
            self.followers.setdefault(to.id, {}).setdefault(event["record_id"], delivery_id)
        elif self._may_preclaim(event, to):
            state = "in_flight"
            self._slots -= 1
            if to.id not in self.endpoints:
                self.endpoints[to.id] = endpoint_of(to.row)
            self.claimed.append(
                claimed(
                    event, delivery_id=delivery_id, webhook_id=to.id, event_id=event["id"],
                    origin=origin, claim=self._capacity.claim, body=event["body"],
                )
            )  # fmt: skip
        else:
            to.waiting = True
            if origin == "test":
                self.tests.append((delivery_id, to.id))
            self.ready.add(to.id)
        taken = state == "in_flight"
        self.created[event["name"]] += 1
        row = (
                delivery_id, event["owner_id"], event["id"], to.id, origin, state, reason, False,
                # One microsecond apart, so that a lane sends in the order of its events.
                self.due + to.made, 0, int(taken), self._capacity.claim if taken else None,
                self._capacity.node_id if taken else None, event["record_id"], seq, self._tx.now,
                self._tx.now if state == "dead" else None,
            )  # fmt: skip
        if state == "held":
            self.lined.append((*row, True))
        else:
            self.rows.append(row)
        to.made += 1

    def _may_preclaim(self, event: Row, to: _Subscriber) -> bool:
        return bool(
            self._slots > 0
            and event["body"] is not None
            and not to.waiting
            and to.row["idle"]
            and to.made < self._capacity.windows.get(to.id, FIRST_WINDOW)
        )


async def fan_out(tx: Tx, capacity: Capacity) -> FannedOut:
    """Give up to EVENTS_AT_ONCE events their seq and their deliveries.

    While `capacity` has slots for healthy webhooks, new deliveries are in flight at once: in an
    idle system one commit separates a write from its request.
    """
    turn = await tx.one(TURN)
    if not turn or not turn["mine"]:
        return FannedOut(turned_away=True)
    events = await tx.all(UNSEEN)
    if not events:
        return FannedOut()
    subscribed = await _subscribers(tx, {row["owner_id"] for row in events})
    filters = Filters(tx, subscribed)
    wanted: list[list[_Subscriber]] = []
    count = 0
    for event in events:
        chosen = [to for to in subscribed.get(event["owner_id"], ()) if _wants(to, event)]
        if wanted and count + len(chosen) > DELIVERIES_AT_ONCE[tx.engine]:
            break
        if event["owner_id"] in filters.owners:
            chosen = await filters.passing(event, chosen)
        count += len(chosen)
        wanted.append(chosen)
        if filters.full:
            break
    met = events[: len(wanted)]
    last = await tx.one(NEXT_SEQ, len(met))
    assert last is not None
    first_seq = int(last["seq"]) - len(met) + 1
    await tx.run(GIVE_SEQ, items([(row["pos"], first_seq + n) for n, row in enumerate(met)]))
    now = _Round(tx, capacity, int(last["due"]))
    for number, (event, chosen) in enumerate(zip(met, wanted, strict=True)):
        for to in chosen:
            now.add(event, first_seq + number, to)
    await sql.insert(tx, "deliveries", COLUMNS, now.rows, ONCE)
    await figures.count_fan_out(tx, met, now.dead, filters.by_webhook())
    await circuits.let_pass(tx, now.tests)
    noted = await lanes.wake_or_note(tx, now.ready, now.due)
    if now.lined:
        await sql.insert(tx, "deliveries", IN_LINE, now.lined, ONCE)
        ready, busy = await lanes.line_up(tx, now.followers, now.due)
        now.ready |= ready
        noted = noted or busy
    return FannedOut(
        Counter(event["name"] for event in met), now.created, now.claimed, now.endpoints, now.dead,
        more=len(met) < len(events) or len(events) == EVENTS_AT_ONCE[tx.engine], noted=noted,
        ready=now.ready, left_out=filters.by_event(),
        announced=[
            Announced(
                row["id"], row["name"], row["record_id"], row["request_id"], row["traceparent"],
                first_seq + number, len(chosen),
            )
            for number, (row, chosen) in enumerate(zip(met, wanted, strict=True))
        ],
    )  # fmt: skip


async def _subscribers(tx: Tx, owners: set[str]) -> dict[str, list[_Subscriber]]:
    found: dict[str, list[_Subscriber]] = {}
    for row in await tx.all(WEBHOOKS, items(sorted(owners))):
        since = snapshots.parse(row["since_snapshot"])
        of_owner = found.setdefault(row["owner_id"], [])
        of_owner.append(_Subscriber(row, _names(row), conditions.of(row), since))
    return found


def _names(webhook: Row) -> frozenset[str] | None:
    """Return the events that a webhook subscribes to; None for a damaged row."""
    names = subscription(webhook["events"])
    if names is None:
        log.error("subscription_unreadable", webhook_id=webhook["id"])
        return None
    return frozenset(names)


def _wants(to: _Subscriber, event: Row) -> bool:
    """Return whether the webhook gets the event: subscribed, and not older than the webhook.

    On PostgreSQL positions do not decide this, because the transaction with the first position may
    commit last. A webhook with a damaged list of events gets each event as a dead delivery.
    """
    if event["webhook_id"] is not None:
        return bool(event["webhook_id"] == to.id)
    if event["pos"] <= to.row["since_pos"]:
        return False
    if to.since is not None and (event["xid"] is None or to.since.sees(int(event["xid"]))):
        return False
    return to.names is None or event["name"] in to.names
