"""What a benchmark hands back, and the few sums that make figures of measurements."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Verdict:
    """One benchmark's outcome: its figures, the bars that were missed, and what did not work."""

    name: str
    figures: dict[str, object] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """Requests refused, deliveries that never came: no figure beside them means anything."""

    @property
    def holds(self) -> bool:
        return not self.missed and not self.broken

    @property
    def reasons(self) -> list[str]:
        """Why it does not hold."""
        return self.broken + self.missed

    def at_least(self, what: str, value: float, bar: float) -> None:
        """`value` is a figure that must reach `bar`."""
        self.figures[what] = rounded(value)
        self.figures[f"{what}_bar"] = bar
        # Written so that a NaN misses.
        if not value >= bar:
            self.missed.append(f"{what} {rounded(value)} < {bar}")

    def at_most(self, what: str, value: float, bar: float) -> None:
        """`value` is a figure that must not pass `bar`."""
        self.figures[what] = rounded(value)
        self.figures[f"{what}_bar"] = bar
        if not value <= bar:
            self.missed.append(f"{what} {rounded(value)} > {bar}")

    def line(self) -> str:
        return json.dumps(
            {"benchmark": self.name, "holds": self.holds, "reasons": self.reasons} | self.figures
        )


def rounded(value: float) -> float:
    """Three significant places behind the point are more than any of these is good for."""
    return round(value, 3)


def median(values: Sequence[float]) -> float:
    """The middle one. Raises on none."""
    return statistics.median(values)


def quantile(values: Sequence[float], share: float) -> float:
    """The value that `share` of all do not pass (nearest rank). Raises on none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def in_ms(microseconds: float) -> float:
    return rounded(microseconds / 1000)
