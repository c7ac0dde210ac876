"""The failure of a command that could not reach the verdict it was asked for: exit status 2."""

from outbox.errors import OutboxError


class Inconclusive(OutboxError):
    """No verdict; the text names the reason and the fix."""
