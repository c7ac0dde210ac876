"""Leader election: one node runs the duties of the whole installation, the others stand by.

PostgreSQL elects with an advisory lock (outbox.database.postgres.leadership). An SQLite file has
one server, which always leads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Pace:
    """Timing of the election, in seconds.

    `beat`: the interval of the leader's heartbeats and of the other nodes' attempts. `silence`: the
    time without a heartbeat after which the server ends the leader's session.
    """

    beat: float = 5.0
    silence: float = 15.0


class Leadership(Protocol):
    """The leadership of this node."""

    @property
    def leads(self) -> bool:
        """Return whether this node leads now; ask again before each piece of work."""

    @property
    def settled(self) -> bool:
        """Return whether this node has led long enough for a former leader to notice its loss."""

    def on_loss(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the event loop when this node stops leading."""

    def start(self) -> None:
        """Start to stand for leader."""

    async def stop(self) -> None:
        """Give up the leadership at once."""


class Alone:
    """The leadership of an installation with one node."""

    leads = True
    settled = True

    def on_loss(self, callback: Callable[[], None]) -> None:
        """Ignore `callback`: a single node never loses the leadership."""

    def start(self) -> None: ...

    async def stop(self) -> None: ...
