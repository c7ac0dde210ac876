"""Refuse writes of owners who are moving to another database, or have moved.

A server reads who they are when it starts, so that a write runs no statement for it: nobody moves
while servers run.
"""

from collections.abc import Collection

from outbox.database.transaction import patience
from outbox.errors import OwnerElsewhere


def must_be_here(elsewhere: Collection[str]) -> None:
    """Raise OwnerElsewhere when the current request is one of these owners'."""
    if elsewhere:
        current = patience.get()
        if current is not None and current.owner in elsewhere:
            raise OwnerElsewhere
