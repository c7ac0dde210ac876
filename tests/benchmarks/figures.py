"""The result of a benchmark, and statistics for its figures."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Verdict:
    """One benchmark's result: its figures, missed bars, and errors."""

    name: str
    figures: dict[str, object] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """Refused requests, missing deliveries: with any of these the figures mean nothing."""

    @property
    def holds(self) -> bool:
        return not self.missed and not self.broken

    @property
    def reasons(self) -> list[str]:
        """Return why it fails."""
        return self.broken + self.missed

    def at_least(self, what: str, value: float, bar: float) -> None:
        """Record that the figure `value` must reach `bar`."""
        self.figures[what] = rounded(value)
        self.figures[f"{what}_bar"] = bar
        # Written so that a NaN misses.
        if not value >= bar:
            self.missed.append(f"{what} {rounded(value)} < {bar}")

    def at_most(self, what: str, value: float, bar: float) -> None:
        """Record that the figure `value` must not exceed `bar`."""
        self.figures[what] = rounded(value)
        self.figures[f"{what}_bar"] = bar
        if not value <= bar:
            self.missed.append(f"{what} {rounded(value)} > {bar}")

    def line(self) -> str:
        return json.dumps(
            {"benchmark": self.name, "holds": self.holds, "reasons": self.reasons} | self.figures
        )


def rounded(value: float) -> float:
    """Round to three decimal places, more than the precision of these figures."""
    return round(value, 3)


def median(values: Sequence[float]) -> float:
    """Return the median. Raise for no values."""
    return statistics.median(values)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of all do not exceed (nearest rank). Raise for no values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def in_ms(microseconds: float) -> float:
    return rounded(microseconds / 1000)
