"""The short closed list of what can go wrong in the engine, as its callers see it."""

from typing import Literal

DatabaseFault = Literal["busy", "full", "io", "connection", "serialization", "corrupt", "read_only"]


class OutboxError(Exception):
    """Base of all of them; its text is one clear line."""


class DatabaseUnavailable(OutboxError):
    """The database could not do the work now; nothing of it is committed. Try again later."""

    def __init__(self, kind: DatabaseFault, text: str) -> None:
        super().__init__(text)
        self.kind: DatabaseFault = kind


class OutcomeUnknown(DatabaseUnavailable):
    """The connection went during COMMIT, and nobody could say whether it took place."""


class CannotStart(OutboxError):
    """Start-up is refused: the text names what is wrong and what to do."""


class UnitError(OutboxError):
    """A unit broke its contract (it awaited something that is not its tx): a bug in the unit."""
