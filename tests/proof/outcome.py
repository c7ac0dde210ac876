"""The outcome of a line of the proof."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field


@dataclass
class Outcome:
    """Figures of a run, and each reason why the line fails."""

    figures: dict[str, object] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def need(self, holds: bool, reason: str) -> None:
        """Note `reason` unless `holds` is true."""
        if not holds:
            self.reasons.append(reason)

    def add(self, name: str, told: Mapping[str, object]) -> None:
        """Add the record of a run that includes its own verdict."""
        self.figures[name] = dict(told)
        self.need(bool(told.get("pass")), f"{name}: {told.get('findings') or 'did not pass'}")


Line = Callable[[int], Awaitable[Outcome]]
"""Runs with a seed. An exception also counts as a reason."""


def told(name: str, outcome: Outcome, seed: int, seconds: float) -> str:
    """Return the JSON line of an outcome."""
    record: dict[str, object] = {
        "line": name,
        "pass": not outcome.reasons,
        "figures": outcome.figures,
        "seed": seed,
        "seconds": round(seconds, 1),
    }
    if outcome.reasons:
        record["reasons"] = outcome.reasons
    return json.dumps(record, ensure_ascii=False)
