"""Fan out: give each committed event the next seq and one delivery per subscribed webhook.

One fan-out runs at a time in the whole installation, so that no event gets a seq late. It waits for
no lock, so that no webhook and no node can block it. A round has a budget of work. It numbers the
events that it meets; what it cannot fan out of them is a remainder, and owners with remainders take
turns, so that no owner waits for the many webhooks or events of another one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from outbox.database import locks
from outbox.database.sql import ITEMS, items
from outbox.database.transaction import Row, Tx
from outbox.queue.drain import budget, subscribers
from outbox.queue.drain.budget import Budget
from outbox.queue.drain.creations import Creations
from outbox.queue.drain.subscribers import Filters, Subscriber
from outbox.queue.state import attempt_counts, fanout_remainders
from outbox.queue.state.claimed_deliveries import Capacity, Claimed, Endpoint
from outbox.queue.state.fanout_remainders import START, Remainder

EVENTS_AT_ONCE = {"sqlite": 125, "postgres": 500}
"""Events that one round numbers."""
PRECLAIMED_BYTES = 4 * 1024
"""Maximum size of a body that fan-out loads for deliveries it claims at once."""

# A node that fans out now handles these events too, so this node does not wait for the lock.
TURN = f"select pg_try_advisory_xact_lock(own_lock({locks.FAN_OUT})) as mine"

EVENT = f"""pos, id, owner_id, name, record_id, record_version, webhook_id, occurred_at, request_id,
  traceparent, body_digest, about_id, record_fields,
  /*sqlite null*/ /*postgres cast(xid as text)*/ as xid,
  /*sqlite null*/ /*postgres due_at*/ as due_at, length(body) as size,
  case when length(body) <= {PRECLAIMED_BYTES} then body end as body"""
# New events, and the owners whose turn it is, in one statement: most rounds find neither.
UNSEEN = f"""
select pos, id, owner_id, name, record_id, record_version, webhook_id, occurred_at, request_id,
  traceparent, body_digest, about_id, record_fields, xid, due_at, size, body, seq,
  null as reached_at, null as reached, null as made
from (
  select {EVENT},
    (select r.seq from remainders r where r.owner_id = events.owner_id) as seq
  from events where seq is null order by pos
  limit /*sqlite {EVENTS_AT_ONCE["sqlite"]}*/ /*postgres {EVENTS_AT_ONCE["postgres"]}*/
) as unseen
union all
select null, null, owner_id, null, null, null, null, null, null, null, null, null, null, null, null,
  null, null, seq, reached_at, reached, made
from (select * from remainders order by turned_at limit {fanout_remainders.AT_ONCE}) as turns
"""
LEFT = f"""
select {EVENT}, seq from events
where owner_id = $1 and webhook_id is null and seq is not null and seq >= $2 order by seq limit $3
"""

# One statement on PostgreSQL, where each is a round trip: it gives the events of the places in $2
# their seq, too. On SQLite it stores the due mark: after a start with the clock set back, these
# deliveries must be due.
NEXT_SEQ = """
/*postgres with last as (*/
update outbox_state set seq = seq + cast($1 as bigint)
  /*sqlite , due_mark = max(due_mark, due_now())*/
where id = 1 returning seq, due_now() as due
/*postgres ), given as (
  update events set seq = last.seq - cast($1 as bigint) + s.number
  from (
    select cast(value ->> 0 as bigint) as place, cast(value ->> 1 as bigint) as number
    from json_array_elements(cast($2 as json)) as items(value)) as s, last
  where events.pos = s.place)
select seq, due from last*/
"""
GIVE_SEQ = f"""
update events set seq = $2 + s.number
from (
  select cast(value ->> 0 as bigint) as place, cast(value ->> 1 as bigint) as number
  from {ITEMS}) as s
where events.pos = s.place
"""


@dataclass(frozen=True, slots=True)
class Announced:
    """An event that is wholly fanned out, with the number of its deliveries."""

    event_id: str
    name: str
    record_id: str
    request_id: str | None
    traceparent: str | None
    seq: int
    deliveries: int


@dataclass(frozen=True, slots=True)
class FannedOut:
    """The result of one round: counts per event name, and the events that it ended.

    `events` got their seq, `created` are all deliveries. `more`: something is left. `turned_away`:
    another node is fanning out. `noted`: some lanes were locked and need another look. `dead` are
    the webhooks of deliveries that ended at once. `ready` are webhooks with unclaimed deliveries,
    with their owners. `left_out` counts, by event, what conditions left out.
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
    ready: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)

    def preclaimed(self) -> Counter[str]:
        """Return how many deliveries of each webhook were claimed on creation."""
        return Counter(delivery.webhook_id for delivery in self.claimed)


async def fan_out(tx: Tx, capacity: Capacity, spent: int = 0) -> FannedOut:
    """Give events their seq and their deliveries, as far as the budget of a round goes.

    `spent` is the price of what the unit has done before; a quarter of the budget is left anyway.
    While `capacity` has slots for healthy webhooks, new deliveries are in flight at once: in an
    idle system one commit separates a write from its request.
    """
    if tx.engine == "postgres":
        turn = await tx.one(TURN)
        if not turn or not turn["mine"]:
            return FannedOut(turned_away=True)
    rows = await tx.all(UNSEEN)
    if not rows:
        return FannedOut()
    events = [row for row in rows if row["pos"] is not None]
    turns = [fanout_remainders.of_row(row) for row in rows if row["pos"] is None]
    first_seq, due = await _number(tx, events)
    numbered = [(row, first_seq + n) for n, row in enumerate(events)]
    creations = Creations(tx, capacity, due)
    current = _Round(tx, creations)
    amount = max(budget.ROUND[tx.engine] - spent, budget.ROUND[tx.engine] // 4)
    # Half of it is for earlier remainders, so that neither they nor new events wait for the others.
    reserved = amount // 2 if turns else 0
    allowance = Budget(amount - reserved)
    remainders = await current.new(numbered, allowance)
    rest = Budget(reserved + max(allowance.left, 0))
    ended = await current.old(turns, rest, remainders) if turns else []
    if remainders or ended:
        await fanout_remainders.save(tx, remainders, ended, creations.due)
    locked = await creations.write()
    await attempt_counts.count_fan_out(tx, events, creations.dead, current.filters.by_webhook())
    return FannedOut(
        Counter(event["name"] for event in events), creations.created, creations.claimed,
        creations.endpoints, creations.dead,
        more=bool(remainders)
        or len(ended) < len(turns)
        or len(turns) == fanout_remainders.AT_ONCE
        or len(events) == EVENTS_AT_ONCE[tx.engine],
        noted=locked, ready=creations.ready, left_out=current.filters.by_event(),
        announced=current.announced,
    )  # fmt: skip


async def _number(tx: Tx, events: Sequence[Row]) -> tuple[int, int]:
    """Give events the next seq; return the first one, and the due clock."""
    places = items([(row["pos"], n) for n, row in enumerate(events, 1)])
    together = (places,) if tx.engine == "postgres" else ()
    last = await tx.one(NEXT_SEQ, len(events), *together)
    assert last is not None
    before = int(last["seq"]) - len(events)
    if events and not together:
        await tx.run(GIVE_SEQ, places, before)
    return before + 1, int(last["due"])


class _Round:
    """One round: its deliveries, what conditions left out, and the events that it ended."""

    def __init__(self, tx: Tx, creations: Creations) -> None:
        self._tx = tx
        self.creations = creations
        self.filters = Filters(tx)
        self.announced: list[Announced] = []

    async def new(self, events: Sequence[tuple[Row, int]], allowance: Budget) -> list[Remainder]:
        """Fan out new events; return the remainders of owners who had none before."""
        allowance.spend(budget.EVENT * len(events))
        direct = {row["webhook_id"] for row, _ in events if row["webhook_id"] is not None}
        owners = {
            row["owner_id"] for row, _ in events if row["webhook_id"] is None and row["seq"] is None
        }
        most = budget.WEBHOOKS_OF_ALL[self._tx.engine]
        of_owners, read = await subscribers.of_owners(self._tx, owners, most)
        allowance.spend(budget.WEBHOOK * read)
        known = {to.id: to for its in (of_owners or {}).values() for to in its}
        known |= await subscribers.of_ids(self._tx, direct.difference(known))
        remainders: dict[str, Remainder] = {}
        for event, seq in events:
            owner_id = event["owner_id"]
            if event["webhook_id"] is not None:
                to = known.get(event["webhook_id"])
                await self._fan(event, seq, [to] if to is not None else [], allowance)
            elif event["seq"] is None and owner_id not in remainders:
                tos = None if of_owners is None else of_owners.get(owner_id, ())
                receivers = None if tos is None else _chosen(event, tos, allowance)
                if receivers is None:
                    remainders[owner_id] = Remainder(owner_id, seq)
                else:
                    await self._fan(event, seq, receivers, allowance)
        return list(remainders.values())

    async def old(
        self, turns: Sequence[Remainder], allowance: Budget, remainders: list[Remainder]
    ) -> list[str]:
        """Continue the remainders of `turns`, add what is left of them, return owners with none."""
        ended: list[str] = []
        half = allowance.left // 2
        for place, turn in enumerate(turns):
            after = await self._continue(turn, allowance)
            if after == turn and place:
                # The budget is too small: the owner keeps the turn and is first in the next round.
                break
            if after is None:
                ended.append(turn.owner_id)
            else:
                remainders.append(after)
            # Another owner's webhooks are read only while the budget allows to use them.
            if allowance.left < half:
                break
        return ended

    async def _continue(self, turn: Remainder, allowance: Budget) -> Remainder | None:
        """Fan out events of one owner; return what is left of them, None for nothing."""
        owner_id, engine = turn.owner_id, self._tx.engine
        tos, follow = await subscribers.page(self._tx, owner_id, turn.reached, allowance.webhooks())
        allowance.spend(budget.WEBHOOK * len(tos))
        whole = turn.reached == START and not follow
        at_once = allowance.events(len(tos), EVENTS_AT_ONCE[engine]) if whole else 1
        events = await self._tx.all(LEFT, owner_id, turn.seq, at_once + 1)
        allowance.spend(budget.EVENT * len(events))
        if not events:
            return None
        if int(events[0]["seq"]) != turn.seq and turn.reached != START:
            # Its event was deleted; the next one begins with the first webhook.
            return Remainder(owner_id, int(events[0]["seq"]))
        for event in events[:at_once]:
            seq = int(event["seq"])
            receivers = _chosen(event, tos, allowance)
            if receivers is None:
                return replace(turn, seq=seq)
            count = await self._fan(event, seq, receivers, allowance, turn.deliveries, follow)
            if follow:
                last = tos[-1].row
                return Remainder(owner_id, seq, (int(last["created_at"]), tos[-1].id), count)
        return Remainder(owner_id, int(events[-1]["seq"])) if len(events) > at_once else None

    async def _fan(
        self,
        event: Row,
        seq: int,
        chosen: list[Subscriber],
        allowance: Budget,
        before: int = 0,
        follow: bool = False,
    ) -> int:
        """Make the deliveries of one event; return how many it has, including those `before`.

        With `follow`, a later round makes others.
        """
        passed = await self.filters.passing(event, chosen)
        # A delivery that the conditions left out costs only their evaluation.
        allowance.spend(budget.DELIVERY * (len(passed) - len(chosen)))
        for to in passed:
            self.creations.add(event, seq, to)
        count = before + len(passed)
        if not follow:
            self.announced.append(
                Announced(
                    event_id=event["id"],
                    name=event["name"],
                    record_id=event["record_id"],
                    request_id=event["request_id"],
                    traceparent=event["traceparent"],
                    seq=seq,
                    deliveries=count,
                )
            )
        return count


def _chosen(event: Row, tos: Sequence[Subscriber], allowance: Budget) -> list[Subscriber] | None:
    """Return those of the webhooks that want the event; None when that costs too much now."""
    chosen = [to for to in tos if to.wants(event)]
    return chosen if allowance.begin(len(tos), chosen, event["size"] or 0) else None
