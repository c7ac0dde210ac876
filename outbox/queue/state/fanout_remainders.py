"""Keep what fan-out has left of an owner's events for later rounds, and let owners take turns.

An event has its seq, and may have some of its deliveries, while the owner has a row here. The row
is written in the transaction that makes the deliveries, so a crash, or another node that goes on,
neither leaves a webhook out nor makes a second delivery. One row an owner is enough, because his
events are fanned out one after another, and it costs nothing for events that one round can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outbox.database.sql import IDS, ITEMS, items
from outbox.database.transaction import Row, Tx

AT_ONCE = 8
"""Owners of whom one round may do something; those whose turn was longest ago."""
START = (-1, "")
"""The place before the first webhook."""

# For a statement on events `e`: those left. With the name of the index: `seq` alone has another.
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

    `made` counts the deliveries of the first one so far.
    """

    owner_id: str
    seq: int
    reached: tuple[int, str] = START
    made: int = 0


def of_row(row: Row) -> Remainder:
    """Return the remainder that a row stores."""
    place = (int(row["reached_at"]), str(row["reached"]))
    return Remainder(row["owner_id"], int(row["seq"]), place, int(row["made"]))


async def save(tx: Tx, left: Sequence[Remainder], ended: Sequence[str], due: int) -> None:
    """Store what is left of owners who had their turn now, and forget owners with nothing left."""
    if left:
        rows = [(one.owner_id, one.seq, *one.reached, one.made) for one in left]
        await tx.run(SAVE, items(rows), due)
    if ended:
        await tx.run(END, items(ended))


async def first_of(tx: Tx, owner_id: str) -> int | None:
    """Return the seq of the owner's first event that is not wholly fanned out."""
    row = await tx.one(FIRST, owner_id)
    return None if row is None else int(row["seq"])
