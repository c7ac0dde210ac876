"""Store which events of an owner fan-out left for later rounds, and let owners take turns.

An event has its seq, and may have some of its deliveries, while the owner has a row here. The row
is written in the transaction that makes the deliveries, so that after a crash, or on another node,
each webhook gets exactly one delivery. One row for each owner is enough, because his events are
fanned out one after another. Events that one round can do cost no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outbox.database.sql import IDS, ITEMS, items
from outbox.database.transaction import Row, Tx

AT_ONCE = 8
"""Owners that one round continues at most; those whose turn was longest ago."""
START = (-1, "")
"""The place before the first webhook."""

# Joins the events `e` that are left. With the name of the index: `seq` alone has another.
LEFT = """
  remainders r join events e on e.owner_id = r.owner_id and e.webhook_id is null
    and e.seq is not null and e.seq >= r.seq"""
IS_LEFT = """
  select 1 from remainders r where r.owner_id = events.owner_id and events.webhook_id is null
    and events.seq >= r.seq"""
SAVE = f"""
insert into remainders (owner_id, seq, reached_at, reached, made, turned_at)
select value ->> 0, cast(value ->> 1 as bigint), cast(value ->> 2 as bigint), value ->> 3,
  cast(value ->> 4 as bigint), $2
from {ITEMS} where true
on conflict (owner_id) do update set seq = excluded.seq, reached_at = excluded.reached_at,
  reached = excluded.reached, made = excluded.made, turned_at = excluded.turned_at
"""
END = f"delete from remainders where owner_id in {IDS}"
FIRST = "select seq from remainders where owner_id = $1"


@dataclass(frozen=True, slots=True)
class Remainder:
    """Events of an owner from `seq` on; of the first one, the webhooks behind `reached`.

    `deliveries` counts those of the first one so far.
    """

    owner_id: str
    seq: int
    reached: tuple[int, str] = START
    deliveries: int = 0


def of_row(row: Row) -> Remainder:
    """Return the remainder that a row stores."""
    place = (int(row["reached_at"]), str(row["reached"]))
    return Remainder(row["owner_id"], int(row["seq"]), place, int(row["made"]))


async def save(tx: Tx, remainders: Sequence[Remainder], ended: Sequence[str], due: int) -> None:
    """Store remainders of owners who had their turn now, and delete those of the owners `ended`."""
    if remainders:
        rows = [(one.owner_id, one.seq, *one.reached, one.deliveries) for one in remainders]
        await tx.run(SAVE, items(rows), due)
    if ended:
        await tx.run(END, items(ended))


async def first_of(tx: Tx, owner_id: str) -> int | None:
    """Return the seq of the owner's first event that is not wholly fanned out."""
    row = await tx.one(FIRST, owner_id)
    return None if row is None else int(row["seq"])
