"""Fan out: give each committed event the next seq and one delivery per subscribed webhook.

One fan-out runs at a time in the whole installation, so that no event gets a seq late. It waits for
no lock, so that no webhook and no node can block it. A round has a budget of work. It numbers the
events that it meets; what it cannot fan out of them is a remainder, and owners with remainders take
turns, so that no owner waits for the many webhooks or events of another one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from outbox.database.sql import ITEMS, items
from outbox.database.transaction import Row, Tx
from outbox.queue.drain import budget, subscribers
from outbox.queue.drain.budget import Budget
from outbox.queue.drain.creations import Creations
from outbox.queue.drain.filters import Filters
from outbox.queue.drain.subscribers import Subscriber
from outbox.queue.state import fanout_remainders, figures
from outbox.queue.state.deliveries import Capacity, Claimed, Endpoint
from outbox.queue.state.fanout_remainders import START, Remainder

EVENTS_AT_ONCE = {"sqlite": 125, "postgres": 500}
"""Events that one round numbers."""
PRECLAIMED_BYTES = 4 * 1024
"""Maximum size of a body that fan-out loads for deliveries it claims at once."""

# Another node that fans out now handles these events too, so this node does not wait.
TURN = "select /*sqlite true*/ /*postgres pg_try_advisory_xact_lock(7201965)*/ as mine"

EVENT = f"""pos, id, owner_id, name, record_id, record_version, webhook_id, occurred_at, request_id,
  traceparent, body_digest, about_id, /*sqlite null*/ /*postgres cast(xid as text)*/ as xid,
  length(body) as size, case when length(body) <= {PRECLAIMED_BYTES} then body end as body"""
# New events, and the owners whose turn it is, in one statement: most rounds find neither.
UNSEEN = f"""
select pos, id, owner_id, name, record_id, record_version, webhook_id, occurred_at, request_id,
  traceparent, body_digest, about_id, xid, size, body, seq, null as reached_at, null as reached,
  null as made
from (
  select {EVENT},
    (select r.seq from remainders r where r.owner_id = events.owner_id) as seq
  from events where seq is null order by pos
  limit /*sqlite {EVENTS_AT_ONCE["sqlite"]}*/ /*postgres {EVENTS_AT_ONCE["postgres"]}*/
) as unseen
union all
select null, null, owner_id, null, null, null, null, null, null, null, null, null, null, null, null,
  seq, reached_at, reached, made
from (select * from remainders order by turned_at limit {fanout_remainders.AT_ONCE}) as turns
"""
LEFT = f"""
select {EVENT}, seq from events
where owner_id = $1 and webhook_id is null and seq is not null and seq >= $2 order by seq limit $3
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

    Counted are events that got their seq, deliveries, and those claimed at once. `more`: something
    is left.
    `turned_away`: another node is fanning out. `noted`: some lanes were locked and need another
    look. `dead` counts deliveries that ended at once. `ready` are webhooks with deliveries that
    were not claimed, with their owners. `left_out` counts, by event, what conditions left out.
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

    `spent` is what its unit has done before, at the prices of the budget; a quarter is left anyway.
    While `capacity` has slots for healthy webhooks, new deliveries are in flight at once: in an
    idle system one commit separates a write from its request.
    """
    turn = await tx.one(TURN)
    if not turn or not turn["mine"]:
        return FannedOut(turned_away=True)
    found = await tx.all(UNSEEN)
    if not found:
        return FannedOut()
    events = [row for row in found if row["pos"] is not None]
    turns = [fanout_remainders.of_row(row) for row in found if row["pos"] is None]
    last = await tx.one(NEXT_SEQ, len(events))
    assert last is not None
    first_seq = int(last["seq"]) - len(events) + 1
    numbered = [(row, first_seq + n) for n, row in enumerate(events)]
    if numbered:
        await tx.run(GIVE_SEQ, items([(row["pos"], seq) for row, seq in numbered]))
    now = _Round(tx, Creations(tx, capacity, int(last["due"])))
    amount = max(budget.ROUND[tx.engine] - spent, budget.ROUND[tx.engine] // 4)
    # Half of it stays for what is left from before, so that neither makes the other wait.
    kept = amount // 2 if turns else 0
    may = Budget(amount - kept)
    left = await now.new(numbered, may)
    ended = await now.old(turns, Budget(kept + max(may.left, 0)), left) if turns else []
    await fanout_remainders.save(tx, left, ended, now.made.due)
    noted = await now.made.write()
    await figures.count_fan_out(tx, events, now.made.dead, now.filters.by_webhook())
    return FannedOut(
        Counter(event["name"] for event in events), now.made.created, now.made.claimed,
        now.made.endpoints, now.made.dead,
        more=bool(left)
        or len(ended) < len(turns)
        or len(turns) == fanout_remainders.AT_ONCE
        or len(events) == EVENTS_AT_ONCE[tx.engine],
        noted=noted, ready=now.made.ready, left_out=now.filters.by_event(), announced=now.announced,
    )  # fmt: skip


class _Round:
    """One round: what it has made, left out and ended."""

    def __init__(self, tx: Tx, made: Creations) -> None:
        self._tx = tx
        self.made = made
        self.filters = Filters(tx)
        self.announced: list[Announced] = []

    async def new(self, events: Sequence[tuple[Row, int]], may: Budget) -> list[Remainder]:
        """Fan out new events; return what is left of owners who had nothing left before."""
        may.spend(budget.EVENT * len(events))
        direct = {row["webhook_id"] for row, _ in events if row["webhook_id"] is not None}
        owners = {
            row["owner_id"] for row, _ in events
            if row["webhook_id"] is None and row["seq"] is None
        }  # fmt: skip
        most = budget.WEBHOOKS_OF_ALL[self._tx.engine]
        of_owners, read = await subscribers.of_owners(self._tx, owners, most)
        may.spend(budget.WEBHOOK * read)
        known = {to.id: to for its in (of_owners or {}).values() for to in its}
        known |= await subscribers.of_ids(self._tx, direct.difference(known))
        left: dict[str, Remainder] = {}
        for event, seq in events:
            owner_id = event["owner_id"]
            if event["webhook_id"] is not None:
                to = known.get(event["webhook_id"])
                await self._fan(event, seq, [to] if to is not None else [], may)
            elif event["seq"] is None and owner_id not in left:
                tos = None if of_owners is None else of_owners.get(owner_id, ())
                chosen = None if tos is None else _chosen(event, tos, may)
                if chosen is None:
                    left[owner_id] = Remainder(owner_id, seq)
                else:
                    await self._fan(event, seq, chosen, may)
        return list(left.values())

    async def old(
        self, turns: Sequence[Remainder], may: Budget, left: list[Remainder]
    ) -> list[str]:
        """Continue what owners have left; add what is left then, return owners without anything."""
        ended: list[str] = []
        half = may.left // 2
        for place, turn in enumerate(turns):
            after = await self._continue(turn, may)
            if after == turn and place:
                # Others have left too little: it keeps its turn, and is first in the next round.
                break
            if after is None:
                ended.append(turn.owner_id)
            else:
                left.append(after)
            # Another owner's webhooks are read only where something can then be done with them.
            if may.left < half:
                break
        return ended

    async def _continue(self, turn: Remainder, may: Budget) -> Remainder | None:
        """Fan out events of one owner; return what is left of them, None for nothing."""
        owner_id, engine = turn.owner_id, self._tx.engine
        tos, follow = await subscribers.page(self._tx, owner_id, turn.reached, may.webhooks())
        may.spend(budget.WEBHOOK * len(tos))
        whole = turn.reached == START and not follow
        at_once = may.events(len(tos), EVENTS_AT_ONCE[engine]) if whole else 1
        events = await self._tx.all(LEFT, owner_id, turn.seq, at_once + 1)
        may.spend(budget.EVENT * len(events))
        if not events:
            return None
        if int(events[0]["seq"]) != turn.seq and turn.reached != START:
            # Its event was deleted; the next one begins with the first webhook.
            return Remainder(owner_id, int(events[0]["seq"]))
        for event in events[:at_once]:
            seq = int(event["seq"])
            chosen = _chosen(event, tos, may)
            if chosen is None:
                return replace(turn, seq=seq)
            made = await self._fan(event, seq, chosen, may, turn.made, follow)
            if follow:
                last = tos[-1].row
                return Remainder(owner_id, seq, (int(last["created_at"]), tos[-1].id), made)
        return Remainder(owner_id, int(events[-1]["seq"])) if len(events) > at_once else None

    async def _fan(
        self,
        event: Row,
        seq: int,
        chosen: list[Subscriber],
        may: Budget,
        before: int = 0,
        follow: bool = False,
    ) -> int:
        """Make the deliveries of one event; return how many it has, with those `before`.

        With `follow`, it will get others in a later round.
        """
        passed = await self.filters.passing(event, chosen)
        # What the conditions left out cost its judgement alone.
        may.spend(budget.DELIVERY * (len(passed) - len(chosen)))
        for to in passed:
            self.made.add(event, seq, to)
        count = before + len(passed)
        if not follow:
            self.announced.append(
                Announced(
                    event["id"], event["name"], event["record_id"], event["request_id"],
                    event["traceparent"], seq, count,
                )
            )  # fmt: skip
        return count


def _chosen(event: Row, tos: Sequence[Subscriber], may: Budget) -> list[Subscriber] | None:
    """Return those of the webhooks that want the event; None when that is too much for now."""
    chosen = [to for to in tos if to.wants(event)]
    return chosen if may.begin(len(tos), chosen, event["size"] or 0) else None
