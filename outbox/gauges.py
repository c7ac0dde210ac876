"""How much waits in the outbox, and how its webhooks fare: read now and then, off any hot path.

One pass over the index of ready deliveries; at a million rows that takes a tenth of a second, so
these units belong on `db.scan`.
"""

from collections import Counter
from dataclasses import dataclass, field

from outbox.database import Tx
from outbox.lanes import due_now


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits at one webhook; `oldest_age` in seconds since its oldest row was due."""

    pending: int
    oldest_age: float


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How one webhook stands; `last_success_at` in microseconds UTC."""

    up: bool
    last_success_at: int | None


@dataclass(slots=True)
class Gauges:
    """One reading. `oldest_ready_age` in seconds, 0 when nothing that could go is waiting."""

    states: Counter[str] = field(default_factory=Counter)
    oldest_ready_age: float = 0.0
    endpoints: Counter[tuple[str, str]] = field(default_factory=Counter)
    waiting: dict[str, Waiting] = field(default_factory=dict)
    standing: dict[str, Endpoint] = field(default_factory=dict)


READY = """
select r.webhook_id, l.active, l.failing, l.wait_until, r.n, r.due, r.oldest from (
  select webhook_id, count(*) as n, min(next_at) as oldest,
    sum(case when next_at <= $1 then 1 else 0 end) as due
  from deliveries where state = 'ready' group by webhook_id
) as r join lanes l on l.webhook_id = r.webhook_id
"""

# Two partial indexes hold just these rows.
TAKEN = """
select 'in_flight' as state, count(*) as n from deliveries where state = 'in_flight'
union all
select 'held', count(*) from deliveries where state = 'held'
"""


async def read(tx: Tx) -> Gauges:
    """Count everything once."""
    gauges = Gauges()
    now = await due_now(tx)
    for row in await tx.all(READY, now):
        rows, due = int(row["n"]), int(row["due"])
        gauges.waiting[row["webhook_id"]] = Waiting(rows, max(0, now - row["oldest"]) / 1e6)
        if not row["active"]:
            gauges.states["parked"] += rows
            continue
        gauges.states["ready"] += due
        gauges.states["scheduled"] += rows - due
        # A failing receiver's backlog is no stall of ours: it waits for its probe.
        if due and not row["failing"]:
            since = max(row["oldest"], row["wait_until"])
            gauges.oldest_ready_age = max(gauges.oldest_ready_age, (now - since) / 1e6)
    for row in await tx.all(TAKEN):
        gauges.states[row["state"]] += row["n"]
    for row in await tx.all("select id, state, circuit, last_success_at from webhooks"):
        gauges.endpoints[row["state"], row["circuit"]] += 1
        up = row["circuit"] == "closed" and row["state"] != "disabled"
        gauges.standing[row["id"]] = Endpoint(up, row["last_success_at"])
    return gauges
