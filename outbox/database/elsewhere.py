"""Refuse requests of owners who are moving to another database, or have moved.

A process knows who they are (see outbox.queue.upkeep.moved_owners), so that a request runs no
statement for it. What it does not know yet, a guard in the database refuses.
"""

from collections.abc import Mapping

from outbox.database.transaction import Home, patience
from outbox.errors import OwnerElsewhere


def must_be_here(elsewhere: Mapping[str, Home | None]) -> None:
    """Raise OwnerElsewhere when the current request is one of these owners'."""
    if elsewhere:
        current = patience.get()
        if current is not None and current.owner in elsewhere:
            raise OwnerElsewhere(elsewhere[current.owner])
