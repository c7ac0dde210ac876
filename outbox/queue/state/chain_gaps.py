"""Store the gaps that deleted attempts leave in chains, each with the digest behind it.

Attempts end up in their chain in the order of their results, but are deleted with their deliveries,
so that a chain may have gaps for a while. A gap is stored as its first and last place and the
digest of its last row, which the next row continues. Gaps that meet become one, so that in the end
one gap at the start of each chain is left: its anchor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from outbox.database import sql
from outbox.database.sql import ITEMS, items
from outbox.database.transaction import Row, Tx

COLUMNS = ("webhook_id", "first_place", "last_place", "digest")

# The gap before and the gap behind each run of places; both are probes of the primary key.
_RUNS = f"""(
  select value ->> 0 as webhook, cast(value ->> 1 as bigint) as first,
    cast(value ->> 2 as bigint) as last
  from {ITEMS}) as s"""
NEIGHBOURS = f"""
select g.webhook_id, g.first_place, g.last_place, g.digest
from {_RUNS} join chain_gaps g on g.webhook_id = s.webhook and g.first_place = s.last + 1
union
select g.webhook_id, g.first_place, g.last_place, g.digest
from {_RUNS} join chain_gaps g on g.webhook_id = s.webhook and g.first_place = (
  select max(first_place) from chain_gaps b
  where b.webhook_id = s.webhook and b.first_place < s.first)
where g.last_place = s.first - 1
"""
REMOVE = f"""
delete from chain_gaps where (webhook_id, first_place) in (
  select value ->> 0, cast(value ->> 1 as bigint) from {ITEMS})
"""

END = """
insert into chain_ends (webhook_id, place, digest, owner_id, attempted_at)
select l.webhook_id, l.chain_place, l.chain_digest, l.owner_id,
  coalesce(w.last_attempt_at, w.created_at)
from lanes l join webhooks w on w.id = l.webhook_id
where l.webhook_id = $1 and l.chain_place > 0
"""
# A chain without attempts needs no anchor.
FORGET_ENDS = """
delete from chain_ends where webhook_id in (
  select e.webhook_id from chain_ends e
  join chain_gaps g on g.webhook_id = e.webhook_id and g.first_place = 1 and g.last_place = e.place
  order by e.webhook_id limit $1)
returning webhook_id
"""
FORGET_GAPS = f"""
delete from chain_gaps where webhook_id in (select value ->> 0 from {ITEMS})
"""


@dataclass(frozen=True, slots=True)
class Gap:
    """Places of a chain whose rows are deleted, and the digest of the last one."""

    webhook_id: str
    first: int
    last: int
    digest: bytes


async def leave(tx: Tx, deleted: Iterable[Row]) -> None:
    """Store the gaps that these rows leave; each has `webhook_id`, `place` and `digest`.

    Rows from before the chain have no place and leave no gap.
    """
    runs = _merged(
        Gap(row["webhook_id"], int(row["place"]), int(row["place"]), bytes(row["digest"]))
        for row in deleted
        if row["place"] is not None and row["digest"] is not None
    )
    if not runs:
        return
    places = items([(run.webhook_id, run.first, run.last) for run in runs])
    neighbours = [gap_of(row) for row in await tx.all(NEIGHBOURS, places)]
    if neighbours:
        await tx.run(REMOVE, items([(gap.webhook_id, gap.first) for gap in neighbours]))
    merged = _merged((*runs, *neighbours))
    await sql.insert(
        tx,
        "chain_gaps",
        COLUMNS,
        [(gap.webhook_id, gap.first, gap.last, gap.digest) for gap in merged],
    )


async def end_chain(tx: Tx, webhook_id: str) -> None:
    """Store where the chain of a webhook ends, before its lane is deleted."""
    await tx.run(END, webhook_id)


async def forget(tx: Tx, most: int) -> int:
    """Delete the ends of up to `most` deleted webhooks without attempts; return how many."""
    rows = await tx.all(FORGET_ENDS, most)
    if rows:
        await tx.run(FORGET_GAPS, items([(row["webhook_id"],) for row in rows]))
    return len(rows)


def gap_of(row: Row) -> Gap:
    """Return the gap of a row of chain_gaps."""
    return Gap(
        row["webhook_id"], int(row["first_place"]), int(row["last_place"]), bytes(row["digest"])
    )


def _merged(gaps: Iterable[Gap]) -> Sequence[Gap]:
    """Return the gaps in order, and merge those that meet."""
    merged: list[Gap] = []
    ordered = sorted(gaps, key=attrgetter("webhook_id", "first"))
    for webhook_id, webhook_gaps in groupby(ordered, key=attrgetter("webhook_id")):
        last: Gap | None = None
        for gap in webhook_gaps:
            if last is not None and gap.first == last.last + 1:
                merged[-1] = last = Gap(webhook_id, last.first, gap.last, gap.digest)
            else:
                merged.append(gap)
                last = gap
    return merged
