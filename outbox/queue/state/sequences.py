"""Number the deliveries of webhooks that ask for it: 1, 2, … in each webhook, without holes.

A number is given in the transaction that makes the delivery, and always under the lock of fan-out,
so that two transactions never give the same one and a rollback leaves no hole. Test events have no
number. A replay has that of the delivery that it repeats.
"""

from __future__ import annotations

from collections.abc import Mapping

from outbox.database.sql import ITEMS, items
from outbox.database.transaction import Tx
from outbox.queue.state import lanes

LAST = """case when w.sequenced then (
    select q.last from sequences q where q.webhook_id = w.id) end as last_sequence"""
"""A column of a statement on `webhooks w`: the last number, null for a webhook without numbers."""

_LAST = "select last from sequences where webhook_id = $1"
_NUMBERED = "select id from webhooks where id = $1 and sequenced"
_TAKE = "update sequences set last = last + $2 where webhook_id = $1 returning last"
# It compares the last number, so that no number is given twice if the lock fails.
_GIVE = f"""
update sequences set last = s.upto
from (
  select value ->> 0 as webhook, cast(value ->> 1 as bigint) as had,
    cast(value ->> 2 as bigint) as upto
  from {ITEMS}) as s
where sequences.webhook_id = s.webhook and sequences.last = s.had
"""


class NumbersTaken(Exception):
    """Another transaction has numbered deliveries of the same webhook meanwhile."""


async def last(tx: Tx, webhook_id: str) -> int | None:
    """Return the last number of a webhook; None when it never had numbers."""
    row = await tx.one(_LAST, webhook_id)
    return None if row is None else int(row["last"])


async def give(tx: Tx, numbers: Mapping[str, tuple[int, int]]) -> None:
    """Store the last number of each webhook: the one that was read, and the new one.

    For fan-out, which has its lock. Raise NumbersTaken.
    """
    rows = [(webhook_id, *numbers[webhook_id]) for webhook_id in sorted(numbers)]
    if rows and await tx.run(_GIVE, items(rows)) != len(rows):
        raise NumbersTaken


async def take(tx: Tx, webhook_id: str, count: int) -> int | None:
    """Take the next `count` numbers for deliveries that the caller makes; return the first one.

    Return None for a webhook without numbers. The caller has locked the lane. Take them late in the
    transaction: fan-out of all nodes waits for its end.
    """
    if not count or await tx.one(_NUMBERED, webhook_id) is None:
        return None
    await tx.one(lanes.NO_FAN_OUT)
    # A fan-out that skipped its turn because of this lock runs after this commit.
    tx.wake = True
    row = await tx.one(_TAKE, webhook_id, count)
    return None if row is None else int(row["last"]) - count + 1
