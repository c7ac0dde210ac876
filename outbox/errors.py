"""The closed list of errors that the engine raises to its callers."""

from typing import Literal

DatabaseFault = Literal["busy", "full", "io", "connection", "serialization", "corrupt", "read_only"]


class OutboxError(Exception):
    """The base of all engine errors; its text is one clear line."""


class DatabaseUnavailable(OutboxError):
    """The database cannot do the work now; nothing is committed. Retry later."""

    def __init__(self, kind: DatabaseFault, text: str) -> None:
        super().__init__(text)
        self.kind: DatabaseFault = kind


class OutcomeUnknown(DatabaseUnavailable):
    """The connection closed during COMMIT, and the outcome of the transaction is unknown."""


class CannotStart(OutboxError):
    """The program cannot start; the text names the problem and the fix."""


class UnitError(OutboxError):
    """A unit awaited something other than its tx: a bug in the unit."""
