"""Store mail notices to owners of webhooks until a sender has sent them.

A row is written in the transaction of the change that it reports. It names the webhook and no
address, so that the sender uses the address of its own time. An attempt is counted before it
starts: a process that ends in the middle of it leaves the notice to the next attempt.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from outbox.database.expiry import Expiry
from outbox.database.transaction import Tx
from outbox.durations import DAY, MINUTE

Kind = Literal["failing", "disabled", "recovered"]
KINDS: tuple[Kind, ...] = get_args(Kind)
KEPT = 2 * DAY
"""How long a notice is stored, sent or not."""
MOST_OF_OWNER, MOST_OF_WEBHOOK = 10, 3
"""Notices of one kind in a day: for one owner, and about one webhook."""
LEASE = 5 * MINUTE
"""Microseconds after which an attempt that did not end counts as failed."""

_ADD = """
insert into notices (id, owner_id, webhook_id, kind, reason, created_at, attempts, due_at)
select $1, $2, $3, $4, $5, $6, 0, $6 where $7 > (
  select count(*) from notices where owner_id = $2 and kind = $4 and created_at > $9)
and $8 > (
  select count(*) from notices
  where owner_id = $2 and kind = $4 and created_at > $9 and webhook_id = $3)
"""
_TAKE = """
update notices set attempts = attempts + 1, due_at = $1 + $2 where id in (
  select id from notices where due_at <= $1 order by due_at limit 1
  /*postgres for update skip locked*/)
returning id, owner_id, webhook_id, kind, reason, created_at, attempts
"""
EXPIRY = Expiry("notices", "id", "created_at", KEPT)


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice under way; `attempts` counts this one. `reason` is an outcome or a word for it."""

    id: str
    owner_id: str
    webhook_id: str
    kind: Kind
    reason: str
    created_at: int
    attempts: int


async def add(tx: Tx, owner_id: str, webhook_id: str, kind: Kind, reason: str) -> bool:
    """Store a notice, unless the limit of this day is reached; return whether it is stored."""
    return bool(
        await tx.run(
            _ADD,
            tx.new_id(), owner_id, webhook_id, kind, reason, tx.now, MOST_OF_OWNER,
            MOST_OF_WEBHOOK, tx.now - DAY,
        )
    )  # fmt: skip


async def any_due(tx: Tx) -> bool:
    """Return whether a notice is due."""
    row = await tx.one("select 1 as due from notices where due_at <= $1 limit 1", tx.now)
    return row is not None


async def take(tx: Tx) -> Notice | None:
    """Start an attempt at the notice that is due first; return None when none is due."""
    row = await tx.one(_TAKE, tx.now, LEASE)
    return None if row is None else Notice(**{name: row[name] for name in Notice.__slots__})


async def sent(tx: Tx, notice_id: str) -> None:
    """End a notice that was sent, or that nobody can get any more."""
    await tx.run("update notices set due_at = null where id = $1", notice_id)


async def failed(tx: Tx, notice_id: str, attempts: int, error: str, wait_us: int | None) -> None:
    """Plan the attempt after this one in `wait_us`; None ends the notice."""
    await tx.run(
        "update notices set due_at = $2, error = $3 where id = $1 and attempts = $4",
        notice_id, None if wait_us is None else tx.now + wait_us, error, attempts,
    )  # fmt: skip
