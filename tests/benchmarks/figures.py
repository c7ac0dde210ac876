"""The size and the result of a benchmark, and statistics for its figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Size:
    """In full, or a share of it: just enough to see that it runs."""

    runs: int = 5
    share: float = 1.0
    engines: tuple[str, ...] = ("sqlite", "postgres")

    def count(self, full: int, least: int = 1) -> int:
        return max(round(full * self.share), least)

    def seconds(self, full: float) -> float:
        return max(full * self.share, min(full, 0.4))


FULL = Size()
QUICK = Size(runs=1, share=0.01, engines=("sqlite",))


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

    def at_least(self, what: str, value: float, bar: float) -> None:
        """Record that the figure `value` must reach `bar`."""
        # Written so that a NaN misses.
        self._judge(what, value, bar, "" if value >= bar else "<")

    def at_most(self, what: str, value: float, bar: float) -> None:
        """Record that the figure `value` must not exceed `bar`."""
        self._judge(what, value, bar, "" if value <= bar else ">")

    def _judge(self, what: str, value: float, bar: float, missed: str) -> None:
        self.figures |= {what: rounded(value), f"{what}_bar": bar}
        if missed:
            self.missed.append(f"{what} {rounded(value)} {missed} {bar}")

    def line(self) -> str:
        told = {"benchmark": self.name, "holds": self.holds, "reasons": self.broken + self.missed}
        return json.dumps(told | self.figures)


def rounded(value: float) -> float:
    """Round to three decimal places, more than the precision of these figures."""
    return round(value, 3)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of all do not exceed (nearest rank). Raise for no values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]
