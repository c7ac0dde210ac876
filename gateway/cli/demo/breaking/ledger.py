"""The ledger of the demo: what was written, what arrived, what waits, and what each act cost."""

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gateway.cli.demo import table
from gateway.cli.demo.demo_writer import Writer
from gateway.cli.demo.receiver import Inbox
from gateway.cli.demo.table import Missing
from outbox.clock import Clock

POINTS = 120
"""Points of the chart, one a second."""
SHOWN = 8
"""Acts on the page, the newest first."""
State = Literal["fault", "recovering", "recovered", "failed"]


@dataclass
class Entry:
    """One act in the ledger; times are of the monotonic clock."""

    name: str
    began: float
    ended: float | None = None
    """When the fault was over."""
    over: float | None = None
    """When the gateway was ready and all that was written before `ended` had arrived."""
    failed: bool = False
    """Whether the fault could not be made, or the demo did not recover."""

    @property
    def state(self) -> State:
        if self.over is not None:
            return "failed" if self.failed else "recovered"
        return "fault" if self.ended is None else "recovering"


@dataclass
class Ledger:
    """What one demo has written and received."""

    inboxes: Sequence[Inbox]
    writer: Writer
    clock: Clock
    began: float
    entries: list[Entry] = field(default_factory=list)
    lost: Collection[Missing] = ()
    """What the gateway will not send any more."""
    kept_back: Collection[Missing] = ()
    """What the owner keeps back: parked at a paused webhook, or cancelled."""
    _points: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=POINTS))

    @property
    def in_fault(self) -> bool:
        """Whether an act lasts."""
        return bool(self.entries) and self.entries[-1].state == "fault"

    def missing(self) -> list[Missing]:
        """Return the deliveries that have not arrived."""
        return table.missing(self.inboxes, self.writer.expected)

    def delivered(self) -> int:
        """Return how many deliveries have arrived, each counted once."""
        return sum(len(inbox.accepted) for inbox in self.inboxes)

    def repeats(self) -> int:
        """Return how many deliveries arrived again after they had been accepted."""
        return sum(sum(inbox.accepted.values()) - len(inbox.accepted) for inbox in self.inboxes)

    def tick(self) -> None:
        """Add a point to the chart: deliveries so far, and deliveries that wait."""
        self._points.append((self.delivered(), len(self.missing())))

    def told(self, *, up: bool, possible: Collection[str]) -> dict[str, Any]:
        """Return the ledger for the page."""
        now = self.clock.monotonic()
        return {
            "seconds": int(now - self.began),
            "up": up,
            "written": len(self.writer.expected),
            "delivered": self.delivered(),
            "waiting": len(self.missing()) - len(self.lost) - len(self.kept_back),
            "keptBack": len(self.kept_back),
            "repeats": self.repeats(),
            "refused": sum(inbox.refused for inbox in self.inboxes),
            "bad": sum(len(inbox.bad) for inbox in self.inboxes),
            "lost": len(self.lost),
            "inboxes": [
                {
                    "name": inbox.name,
                    "manner": inbox.manner,
                    "delivered": len(inbox.accepted),
                    "waiting": table.waiting(inbox, self.writer.expected),
                    "retries": inbox.retries,
                }
                for inbox in self.inboxes
            ],
            "acts": [
                {
                    "name": entry.name,
                    "state": entry.state,
                    "at": int(entry.began - self.began),
                    "fault": round((entry.ended or now) - entry.began, 1),
                    "recovery": round((entry.over or now) - (entry.ended or now), 1),
                }
                for entry in reversed(self.entries[-SHOWN:])
            ],
            "points": [list(point) for point in self._points],
            "possible": sorted(possible),
        }
