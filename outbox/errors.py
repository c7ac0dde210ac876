"""The closed list of errors that the engine raises to its callers."""

from collections.abc import Collection
from typing import Literal

DatabaseFault = Literal[
    "busy", "full", "io", "connection", "serialization", "corrupt", "read_only", "outcome_unknown"
]


class OutboxError(Exception):
    """The base of all engine errors; its text is one clear line."""


class DatabaseUnavailable(OutboxError):
    """The database cannot do the work now; nothing is committed, except by OutcomeUnknown."""

    def __init__(self, kind: DatabaseFault, text: str) -> None:
        super().__init__(text)
        self.kind: DatabaseFault = kind

    @property
    def kinds(self) -> tuple[DatabaseFault, ...]:
        """The kinds by which it is counted."""
        return (self.kind,)


class OwnerElsewhere(DatabaseUnavailable):
    """The owner of the request is moving to another database, or has moved; nothing is written."""

    def __init__(self, home: tuple[str, str] | None = None) -> None:
        """`home`: the name and the address of the installation that has the owner, if known."""
        super().__init__("read_only", "this owner is moving to another database")
        self.home = home


class OutcomeUnknown(DatabaseUnavailable):
    """COMMIT failed in a way that leaves its outcome open: the transaction may be committed."""

    made_work: bool = False
    changed: Collection[str] = frozenset()
    """What others must hear, in case it is committed: see Tx.wake and Tx.changed."""

    @property
    def kinds(self) -> tuple[DatabaseFault, ...]:
        return (self.kind, "outcome_unknown")


class CannotStart(OutboxError):
    """The program cannot start; the text names the problem and the fix."""


class UnitError(OutboxError):
    """A unit awaited something other than its tx: a bug in the unit."""
