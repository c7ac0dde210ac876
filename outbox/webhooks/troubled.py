"""Find the webhooks of an owner that need somebody: disabled ones, and those that keep failing."""

from dataclasses import dataclass
from typing import Literal

from outbox.database.transaction import Row, Tx

# The condition of the index, word for word.
TROUBLED = """
select id, url, state, disabled_reason from webhooks
where owner_id = $1 and (state = 'disabled' or circuit <> 'closed')
  and state <> 'paused'
order by case when state <> 'disabled' then 2 when disabled_reason = 'gone' then 0 else 1 end, id
limit $2
"""


Trouble = Literal["gone", "disabled", "failing"]
"""Disabled by an answer 410, disabled after days of failures, or an open circuit."""


@dataclass(frozen=True, slots=True)
class Troubled:
    """A webhook in trouble."""

    id: str
    url: str
    trouble: Trouble


async def troubled(tx: Tx, owner_id: str, limit: int) -> list[Troubled]:
    """Return up to `limit` webhooks in trouble, one kind of trouble after the other.

    A paused webhook is not: its owner knows of it.
    """
    return [
        Troubled(row["id"], row["url"], _trouble(row))
        for row in await tx.all(TROUBLED, owner_id, limit)
    ]


def _trouble(row: Row) -> Trouble:
    if row["state"] != "disabled":
        return "failing"
    return "gone" if row["disabled_reason"] == "gone" else "disabled"
