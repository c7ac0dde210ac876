"""How a command ends when it has done its work and yet does not end with 0."""

from outbox.errors import OutboxError

FAILED = 1
"""What was examined would fail, and the output says why."""
CHANGES = 3
"""What was compared differs. Not 1 and 2, which are failures and invalid arguments."""


class Ended(Exception):
    """The command has said everything; it ends with this exit status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Inconclusive(OutboxError):
    """The command could not reach the verdict it was asked for: exit status 2.

    The text names the reason and the fix.
    """
