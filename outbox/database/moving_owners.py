"""Refuse requests of owners who are moving to another database, or have moved.

A process knows who they are (see outbox.queue.upkeep.moved_owners), so that a request runs no
statement for it. What it does not know yet, a guard in the database refuses when it writes. But no
guard keeps it from finding what a move deletes table by table: while the process cannot hear of
moves, each read and write asks.

A duty works for all owners, so it asks the database for those that it may choose: the refusal of
one would end the run for the others, in each run until the move ends.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from outbox.database.transaction import Home, T, Tx, patience
from outbox.errors import OwnerElsewhere

_ABSENT = """
select id from owners where id = $1 and state not in ('here', 'copying', 'resting')
"""


def is_here(owner: str) -> str:
    """Return the condition that an owner, of this column, may change here.

    Others are closed by a move, or their rows arrive: changes of these are left out in silence.
    """
    # No anti-join, for which the planner might read all rows at once.
    return f"""(select moved.state from owners moved
    where moved.id = {owner} and moved.state not in ('here', 'copying')) is null"""


def must_be_here(elsewhere: Mapping[str, Home | None]) -> None:
    """Raise OwnerElsewhere when the current request is one of these owners'."""
    if elsewhere:
        current = patience.get()
        if current is not None and current.owner in elsewhere:
            raise OwnerElsewhere(elsewhere[current.owner])


def asking(unit: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
    """Return a unit that raises OwnerElsewhere when the request's owner may have no rows here."""

    async def asked(tx: Tx, *args: Any, **kwargs: Any) -> T:
        current = patience.get()
        if current is not None and await tx.one(_ABSENT, current.owner) is not None:
            raise OwnerElsewhere(None)
        return await unit(tx, *args, **kwargs)

    return asked
