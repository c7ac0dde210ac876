"""Read figures of webhooks for charts: by step of time, by webhook, and what waits now."""

from __future__ import annotations

from typing import Literal

from outbox.database.index_plans import by_hash
from outbox.database.transaction import Tx
from outbox.queue.log.chart_figures import REACHED, Figures, Pending
from outbox.queue.state.attempt_counts import EVENT, TIMES

RETRIES_SEEN = 1000
"""The age of the oldest waiting delivery is exact up to this number of waiting retries."""

Scope = Literal["owner", "webhook"]
SCOPES: dict[Scope, str] = {
    "owner": "subject_id in (select id from webhooks where owner_id = $1)",
    "webhook": "subject_id = $1",
}
SUMS = ", ".join(f"cast(sum({name}) as bigint) as {name}" for name in ("count", *TIMES))
# Without the durations: with fifty webhooks of thirty days they cost more than all else.
FEW_SUMS = "cast(sum(count) as bigint) as count, cast(sum(total_us) as bigint) as total_us"
BY_STEP = f"""
select at / $2 * $2 as step, result, {SUMS} from figures
where {{scope}} and at >= $3 and at < $4 group by at / $2 * $2, result
"""
BY_WEBHOOK = f"""
select subject_id, result, {FEW_SUMS} from figures
where {SCOPES["owner"]} and at >= $2 and at < $3 group by subject_id, result
"""
EVENTS = f"""
select cast(coalesce(sum(count), 0) as bigint) as count from figures
where subject_id = $1 and result = '{EVENT}' and at >= $2 and at < $3
"""

# A first attempt is due when its delivery is made, so the soonest is the oldest.
PENDING = """
select w.id, (
  select count(*) from (
    select 1 as one from deliveries /*sqlite indexed by deliveries_ready*/
    where webhook_id = w.id and state = 'ready' limit $2) as ready) as waiting, (
  select min(created_at) from (
    select * from (
      select created_at from deliveries /*sqlite indexed by deliveries_ready*/
      where webhook_id = w.id and state = 'ready' and retry = false
      order by next_at limit 1) as firsts
    union all
    select * from (
      select created_at from deliveries /*sqlite indexed by deliveries_ready*/
      where webhook_id = w.id and state = 'ready' and retry = true
      order by next_at limit $3) as retries) as heads) as oldest
from webhooks w where {scope}
"""


async def by_step(
    tx: Tx, scope: Scope, scope_id: str, start: int, step: int, count: int
) -> list[Figures]:
    """Return the figures of `count` steps from `start` on, a multiple of `step`."""
    await by_hash(tx)
    steps = [Figures() for _ in range(count)]
    text = BY_STEP.format(scope=SCOPES[scope])
    for row in await tx.all(text, scope_id, step, start, start + step * count):
        steps[(row["step"] - start) // step].add(row)
    return steps


async def by_webhook(tx: Tx, owner_id: str, start: int, end: int) -> dict[str, Figures]:
    """Return the figures of an owner's webhooks between two moments, without `times`."""
    await by_hash(tx)
    figures: dict[str, Figures] = {}
    for row in await tx.all(BY_WEBHOOK, owner_id, start, end):
        of_webhook = figures.setdefault(row["subject_id"], Figures())
        of_webhook.results[row["result"]] += row["count"]
        of_webhook.total_us += row["total_us"] if row["result"] in REACHED else 0
    return figures


async def events(tx: Tx, owner_id: str, start: int, end: int) -> int:
    """Return the number of an owner's events between two moments."""
    row = await tx.one(EVENTS, owner_id, start, end)
    return 0 if row is None else int(row["count"])


async def pending(tx: Tx, scope: Scope, scope_id: str, most: int) -> dict[str, Pending]:
    """Return what waits at each webhook, counting up to `most` of each."""
    text = PENDING.format(scope="w.owner_id = $1" if scope == "owner" else "w.id = $1")
    rows = await tx.all(text, scope_id, most, RETRIES_SEEN)
    return {row["id"]: Pending(int(row["waiting"]), row["oldest"]) for row in rows}


async def since(tx: Tx) -> int:
    """Return the moment from which on attempts and events are counted."""
    row = await tx.one("select figures_since from outbox_state")
    return 0 if row is None else int(row["figures_since"])
