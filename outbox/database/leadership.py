"""Which node does what the whole installation needs done once: one leads, the others wait.

PostgreSQL decides by an advisory lock (outbox.database.postgres.leadership); an SQLite file has one
server, and that one leads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between signs of life of the leader, which are also the others' looks for its place,
    and seconds without one after which the server takes the place away.
    """

    beat: float = 5.0
    silence: float = 15.0


class Leadership(Protocol):
    """This node's part in the choice of a leader."""

    @property
    def leads(self) -> bool:
        """Whether this node leads now; ask again before each piece of work."""

    @property
    def settled(self) -> bool:
        """Whether it has led for so long that a former leader must have noticed."""

    def on_loss(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the event loop when this node has stopped leading."""

    def start(self) -> None:
        """Begin to stand for leader."""

    async def stop(self) -> None:
        """Give the place up, at once."""


class Alone:
    """The leadership of an installation of one node."""

    leads = True
    settled = True

    def on_loss(self, callback: Callable[[], None]) -> None:
        """There is nobody to lose it to."""

    def start(self) -> None: ...

    async def stop(self) -> None: ...
