"""Claim at webhooks that are held: a delivery that passes, or one probe of an open circuit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from outbox.database.sql import IDS, items
from outbox.database.transaction import Tx
from outbox.queue.state.claimed_deliveries import MOST_ATTEMPTS, Capacity

_TAKE = f"""
update deliveries set state = 'in_flight', claim = $1, node_id = $2,
  attempts = case when attempts < {MOST_ATTEMPTS} then attempts + 1 else attempts end
where id = ({{chosen}}) returning id
"""
_PASSING = _TAKE.format(
    chosen="""
  select d.id from passes p join deliveries d on d.id = p.delivery_id
  where p.webhook_id = $3 and d.state = 'ready' and d.next_at <= (select due_now())
    and (p.pauses or not $4)
  order by d.next_at limit 1 /*postgres for update of d skip locked*/"""
)
_OLDEST = _TAKE.format(
    chosen="""
  select id from (
    select * from (
      select id, next_at from deliveries
      where webhook_id = $3 and state = 'ready' and retry = false
        and next_at <= (select due_now())
      order by next_at limit 1 /*postgres for update skip locked*/
    ) as firsts
    union all
    select * from (
      select id, next_at from deliveries
      where webhook_id = $3 and state = 'ready' and retry = true
        and next_at <= (select due_now())
      order by next_at limit 1 /*postgres for update skip locked*/
    ) as retries
  ) as due order by next_at limit 1"""
)
_PASSED = f"delete from passes where delivery_id in {IDS}"
# The recorded result sets the next probe. Until then the receiver may use the whole timeout of the
# attempt (the longest one, if the webhook has none), and recording takes a moment. If this node
# ends before the probe does, the next probe comes as after a failed one.
LONGEST_TIMEOUT_MS = 30_000
SETTLING_MS = 5_000
_PROBING = f"""
update lanes set probe_at = (select due_now()) + coalesce((
  select /*sqlite max*/ /*postgres greatest*/(coalesce(w.circuit_backoff, 0),
    (coalesce(w.timeout_ms, {LONGEST_TIMEOUT_MS}) + {SETTLING_MS}) * 1000)
  from webhooks w where w.id = webhook_id), 0)
where webhook_id in {IDS}
"""


@dataclass(frozen=True, slots=True)
class ProbeClaims:
    """What was claimed: deliveries with their webhooks, and which of them are probes."""

    webhooks: Mapping[str, str]
    probes: frozenset[str]


NONE = ProbeClaims({}, frozenset())


class Open(Protocol):
    """A lane with an open circuit: microseconds until a probe is due; or one that pauses."""

    probe_in: int | None
    open_for: int


async def take(tx: Tx, capacity: Capacity, open_lanes: Mapping[str, Open]) -> ProbeClaims:
    """Claim one delivery of each of these webhooks, whose lanes the caller has locked.

    A delivery with a pass comes first; else a probe, when one is due. While the receiver has asked
    for a pause, only what passes that goes.
    """
    webhooks: dict[str, str] = {}
    probes: dict[str, str] = {}
    for webhook_id, lane in sorted(open_lanes.items()):
        pauses = lane.open_for < 0
        due = lane.probe_in is not None and lane.probe_in <= 0 and not pauses
        mine = capacity.claim, capacity.node_id, webhook_id
        passing = await tx.one(_PASSING, *mine, pauses)
        if passing is not None:
            webhooks[passing["id"]] = webhook_id
        elif due and (oldest := await tx.one(_OLDEST, *mine)) is not None:
            webhooks[oldest["id"]] = probes[oldest["id"]] = webhook_id
    if passed := [one for one in webhooks if one not in probes]:
        await tx.run(_PASSED, items(passed))
    if probes:
        await tx.run(_PROBING, items(sorted(probes.values())))
    return ProbeClaims(webhooks, frozenset(probes))
