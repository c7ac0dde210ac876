"""Describes queued mail: its row, its text, its retries, and the interface of a queue."""

from dataclasses import dataclass
from typing import Protocol

from outbox.database.transaction import Tx
from outbox.durations import SECOND

WAITS = (30, 120, 600, 3_600, 14_400, 43_200)
"""Seconds before the attempts after the first; after the last one the mail is given up."""


class Queued(Protocol):
    """The row of a queue; `attempts` counts the one under way."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def attempts(self) -> int: ...


class Queue(Protocol):
    """A module that keeps mails in the database until they are sent."""

    async def sent(self, tx: Tx, mail: Queued, /) -> None:
        """End a mail that was sent."""

    async def failed(self, tx: Tx, mail: Queued, error: str, /, *, final: bool) -> bool:
        """Plan the next attempt; return whether there is one. `final`: none can succeed."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail; with `html` it has its text in both forms."""

    mail: Queued
    to: str
    sender: str
    """The name of the sender, beside the address of the settings."""
    subject: str
    text: str
    html: str = ""


def wait_after(attempts: int) -> int | None:
    """Return microseconds until the next attempt after this many; None after the last one."""
    return WAITS[attempts - 1] * SECOND if attempts <= len(WAITS) else None


def line(text: str) -> str:
    """Return text for a header: one line without control characters, which no part can decode to.

    The library reads `=?…?=` as an encoded word, whatever it holds: lines and headers too.
    """
    words = "".join(c if c.isprintable() else " " for c in text).replace("=?", "= ?")
    return " ".join(words.split())
