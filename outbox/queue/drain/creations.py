"""Make the deliveries of one round of fan-out."""

from collections import Counter

from outbox.database import sql
from outbox.database.transaction import Insert, Row, Tx
from outbox.queue.drain.loading import endpoint_of
from outbox.queue.drain.subscribers import Subscriber
from outbox.queue.state import circuits, lanes
from outbox.queue.state.deliveries import FIRST_WINDOW, Capacity, Claimed, Endpoint, claimed
from outbox.queue.state.fair_shares import Places
from outbox.states import Origin

UNREADABLE = "the webhook's list of events is damaged"
UNJUDGED = "the webhook's conditions are damaged"

COLUMNS = (
    "id", "owner_id", "event_id", "webhook_id", "origin", "state", "reason", "retry", "next_at",
    "tries", "attempts", "claim", "node_id", "record_id", "seq", "created_at", "finished_at",
)  # fmt: skip
IN_LINE = (*COLUMNS, "ordered")
ONCE = "on conflict (event_id, webhook_id) where origin = 'event' do nothing"

# Put off, so that PostgreSQL writes it with the transaction's last statement.
INSERT = Insert("deliveries", COLUMNS, ONCE, referred=False)


class Creations:
    """The deliveries of one round."""

    def __init__(self, tx: Tx, capacity: Capacity, due: int) -> None:
        self._tx = tx
        self._capacity = capacity
        self.due = due
        self._places = Places(capacity.slots, capacity.shares.further, capacity.shares)
        self.rows: list[tuple[object, ...]] = []
        self.in_lines: list[tuple[object, ...]] = []
        """The rows of ordered webhooks."""
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
                claimed(
                    event, delivery_id=delivery_id, webhook_id=to.id, event_id=event["id"],
                    origin=origin, claim=self._capacity.claim, body=event["body"],
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
        row = (
            delivery_id, event["owner_id"], event["id"], to.id, origin, state, reason, False,
            # One microsecond apart, so that a lane sends in the order of its events.
            self.due + to.deliveries, 0, int(claim is not None), claim, node_id,
            event["record_id"], seq, self._tx.now, self._tx.now if state == "dead" else None,
        )  # fmt: skip
        if state == "held":
            self.in_lines.append((*row, True))
        else:
            self.rows.append(row)
        to.deliveries += 1

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
        for row in self.rows:
            self._tx.later(INSERT, row)
        await circuits.let_pass(self._tx, self.tests)
        locked = await lanes.wake_or_note(self._tx, self.ready, self.due)
        if self.in_lines:
            await sql.insert(self._tx, "deliveries", IN_LINE, self.in_lines, ONCE)
            heads, busy = await lanes.line_up(self._tx, self.followers, self.due)
            self.ready |= {webhook_id: self._owners[webhook_id] for webhook_id in heads}
            locked = locked or busy
        return locked
