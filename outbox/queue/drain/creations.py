"""Make the deliveries of one round of fan-out."""

from collections import Counter

from outbox.database import sql
from outbox.database.sql import items
from outbox.database.transaction import Insert, Row, Tx
from outbox.queue.drain.loading import endpoint_of
from outbox.queue.drain.subscribers import Subscriber
from outbox.queue.state import circuits, lanes, sequences
from outbox.queue.state.claimed_deliveries import (
    FIRST,
    FIRST_WINDOW,
    Capacity,
    Claimed,
    ClaimedAttempt,
    Endpoint,
    event_of,
)
from outbox.queue.state.fair_shares import ClaimSlots
from outbox.states import Origin

UNREADABLE = "the webhook's list of events is damaged"
UNJUDGED = "the webhook's conditions are damaged"

COLUMNS = (
    "id", "owner_id", "event_id", "webhook_id", "origin", "state", "reason", "retry", "next_at",
    "tries", "attempts", "claim", "node_id", "record_id", "seq", "created_at", "finished_at",
)  # fmt: skip
IN_LINE = (*COLUMNS, "ordered")
NUMBERED = (*COLUMNS, "sequence")
NUMBERED_IN_LINE = (*IN_LINE, "sequence")
WITH_NUMBER = (NUMBERED, NUMBERED_IN_LINE)
NEW = f"select id, webhook_id from deliveries where id in {sql.IDS} order by webhook_id, sequence"
MOVE = "update deliveries set sequence = $2 where id = $1"
ONCE = "on conflict (event_id, webhook_id) where origin = 'event' do nothing"

# Put off, so that PostgreSQL writes it with the transaction's last statement.
INSERT = Insert("deliveries", COLUMNS, ONCE, referred=False)


class Creations:
    """The deliveries of one round."""

    def __init__(self, tx: Tx, capacity: Capacity, due: int) -> None:
        self._tx = tx
        self._capacity = capacity
        self.due = due
        self._places = ClaimSlots(capacity.slots, capacity.shares.further, capacity.shares)
        self.rows: dict[tuple[str, ...], list[tuple[object, ...]]] = {}
        """The new rows by their columns: ordered and numbered deliveries have more of them."""
        self.numbers: dict[str, tuple[int, int]] = {}
        """The last number of each numbered webhook, before this round and now."""
        self.followers: dict[str, dict[str, str]] = {}
        """Of each ordered webhook, one new delivery of each record."""
        self._owners: dict[str, str] = {}
        """The owners of these webhooks."""
        self.claimed: list[Claimed] = []
        self.endpoints: dict[str, Endpoint] = {}
        self.dead: list[str] = []
        self.ready: dict[str, str] = {}
        self.tests: list[tuple[str, str]] = []
        self.created: Counter[str] = Counter()

    def add(self, event: Row, seq: int, to: Subscriber) -> None:
        """Add one delivery of `event`: claimed, ready behind the lane's queue, held, or dead."""
        delivery_id = self._tx.new_id()
        origin: Origin = "test" if event["webhook_id"] and not event["about_id"] else "event"
        state, reason = "ready", None
        number = self._number(to) if origin == "event" else None
        if to.names is None or to.conditions is None:
            state, reason = "dead", UNREADABLE if to.names is None else UNJUDGED
            self.dead.append(to.id)
        elif to.row["ordered"] and origin == "event":
            state = "held"
            self._owners[to.id] = event["owner_id"]
            self.followers.setdefault(to.id, {}).setdefault(event["record_id"], delivery_id)
        elif self._may_preclaim(event, to):
            state = "in_flight"
            if to.id not in self.endpoints:
                self.endpoints[to.id] = endpoint_of(to.row)
            self.claimed.append(
                Claimed(
                    id=delivery_id, owner_id=event["owner_id"], webhook_id=to.id, origin=origin,
                    claim=self._capacity.claim, sequence=number, attempt=self._first(event),
                    event=event_of(event, event["id"], event["body"]),
                )
            )  # fmt: skip
        else:
            to.waiting = True
            if origin == "test":
                self.tests.append((delivery_id, to.id))
            self.ready[to.id] = event["owner_id"]
        claim = node_id = None
        if state == "in_flight":
            claim, node_id = self._capacity.claim, self._capacity.node_id
        self.created[event["name"]] += 1
        row: tuple[object, ...] = (
            delivery_id, event["owner_id"], event["id"], to.id, origin, state, reason, False,
            # One microsecond apart, so that a lane sends in the order of its events.
            self.due + to.deliveries, 0, int(claim is not None), claim, node_id,
            event["record_id"], seq, self._tx.now, self._tx.now if state == "dead" else None,
        )  # fmt: skip
        columns: tuple[str, ...] = IN_LINE if state == "held" else COLUMNS
        if state == "held":
            row = (*row, True)
        if number is not None:
            columns = NUMBERED_IN_LINE if state == "held" else NUMBERED
            row = (*row, number)
        self.rows.setdefault(columns, []).append(row)
        to.deliveries += 1

    def _first(self, event: Row) -> ClaimedAttempt:
        if event["due_at"] is None:
            return FIRST
        return ClaimedAttempt(waited_us=self.due - event["due_at"])

    def _number(self, to: Subscriber) -> int | None:
        """Return the next number of a webhook; None when it has no numbers."""
        if to.row["last_sequence"] is None:
            return None
        had, last = self.numbers.get(to.id, (int(to.row["last_sequence"]),) * 2)
        self.numbers[to.id] = (had, last + 1)
        return last + 1

    def _may_preclaim(self, event: Row, to: Subscriber) -> bool:
        return bool(
            event["body"] is not None
            and not to.waiting
            and to.row["idle"]
            and to.deliveries < self._capacity.windows.get(to.id, FIRST_WINDOW)
            and self._places.take(event["owner_id"])
        )

    async def write(self) -> bool:
        """Insert the deliveries and wake their lanes; return whether some lanes were locked."""
        for row in self.rows.get(COLUMNS, ()):
            self._tx.later(INSERT, row)
        fewer = await self._insert(NUMBERED)
        await circuits.let_pass(self._tx, self.tests, pauses=True)
        locked = await lanes.wake_or_note(self._tx, self.ready, self.due)
        if self.followers:
            await self._insert(IN_LINE)
            fewer = await self._insert(NUMBERED_IN_LINE) or fewer
            heads, busy = await lanes.line_up(self._tx, self.followers, self.due)
            self.ready |= {webhook_id: self._owners[webhook_id] for webhook_id in heads}
            locked = locked or busy
        if fewer:
            await self._close_holes()
        if self.numbers:
            await sequences.give(self._tx, self.numbers)
        return locked

    async def _insert(self, columns: tuple[str, ...]) -> bool:
        """Insert the rows with these columns; return whether some of them existed already."""
        rows = self.rows.get(columns, [])
        return await sql.insert(self._tx, "deliveries", columns, rows, ONCE) < len(rows)

    async def _close_holes(self) -> None:
        """Move numbers down, where an event had a delivery already and its number is unused."""
        rows = await self._tx.all(
            NEW, items([row[0] for columns in WITH_NUMBER for row in self.rows.get(columns, ())])
        )
        numbers = {webhook_id: (had, had) for webhook_id, (had, _) in self.numbers.items()}
        moved: dict[str, int] = {}
        for row in rows:
            had, last = numbers[row["webhook_id"]]
            numbers[row["webhook_id"]] = (had, last + 1)
            moved[row["id"]] = last + 1
        await self._tx.many(MOVE, list(moved.items()))
        for delivery in self.claimed:
            delivery.sequence = moved.get(delivery.id)
        self.numbers = numbers
