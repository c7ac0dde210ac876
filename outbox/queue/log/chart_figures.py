"""The figures of charts: how the attempts of some webhooks in some time ended; what waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from outbox.database.transaction import Row
from outbox.queue.state.attempt_counts import BOUNDS, FILTERED, LOST, TIMES

REACHED = frozenset(
    {"success", "throttled", "http_3xx", "http_4xx", "http_5xx", "timeout", "protocol_error"}
)
"""The outcomes whose duration is the receiver's; the other attempts never reached it."""


@dataclass(slots=True)
class Figures:
    """How the attempts of some webhooks in some time ended."""

    results: Counter[str] = field(default_factory=Counter)
    times: list[int] = field(default_factory=lambda: [0] * len(TIMES))
    """Attempts that reached the receiver, by their duration."""
    total_us: int = 0
    """The sum of their durations, where they are not counted by duration."""

    @property
    def succeeded(self) -> int:
        """Attempts that the receiver accepted, which is also the number of deliveries."""
        return self.results["success"]

    @property
    def failures(self) -> list[tuple[str, int]]:
        """Outcomes of failed attempts with their numbers, the most frequent first."""
        rest = (*LOST, FILTERED, "success", "aborted")
        return [pair for pair in self.results.most_common() if pair[0] not in rest and pair[1]]

    @property
    def failed(self) -> int:
        """Attempts that failed, without those that the end of a process cut off."""
        return sum(count for _, count in self.failures)

    @property
    def lost(self) -> int:
        """Deliveries that ended without success."""
        return sum(self.results[end] for end in LOST)

    @property
    def filtered(self) -> int:
        """Deliveries that the conditions of a webhook left out."""
        return self.results[FILTERED]

    @property
    def rate(self) -> float | None:
        """The part of attempts that succeeded, from 0 to 1."""
        tried = self.succeeded + self.failed
        return self.succeeded / tried if tried else None

    @property
    def average(self) -> int | None:
        """Microseconds: the average duration of attempts that reached the receiver."""
        reached = sum(self.results[result] for result in REACHED)
        return self.total_us // reached if reached else None

    def duration(self, part: float) -> int | None:
        """Return microseconds within which this part of the attempts ended, read off the steps."""
        rank, passed = part * sum(self.times), 0
        if not rank:
            return None
        for place, count in enumerate(self.times):
            if count and passed + count >= rank:
                least = BOUNDS[place - 1] if place else 0
                most = BOUNDS[place] if place < len(BOUNDS) else 2 * BOUNDS[-1]
                return round(least + (most - least) * (rank - passed) / count)
            passed += count
        return 2 * BOUNDS[-1]

    def add(self, row: Row) -> None:
        """Add a row of sums."""
        self.results[row["result"]] += row["count"]
        if row["result"] in REACHED:
            self.times = [sum_ + row[name] for sum_, name in zip(self.times, TIMES, strict=True)]

    def merge(self, other: Figures) -> None:
        """Add the figures of another time."""
        self.results.update(other.results)
        self.times = [one + two for one, two in zip(self.times, other.times, strict=True)]


@dataclass(frozen=True, slots=True)
class Pending:
    """What waits at a webhook, counted up to a limit; `oldest_at` is when the oldest was made."""

    waiting: int = 0
    oldest_at: int | None = None


def total(steps: Sequence[Figures]) -> Figures:
    """Return the sum of steps."""
    figures = Figures()
    for step in steps:
        figures.merge(step)
    return figures
