"""What a line of the proof comes to."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field


@dataclass
class Outcome:
    """Figures of a run, and each reason why the line does not hold."""

    figures: dict[str, object] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def need(self, holds: bool, reason: str) -> None:
        """Note `reason` unless it holds."""
        if not holds:
            self.reasons.append(reason)

    def add(self, name: str, told: Mapping[str, object]) -> None:
        """Take in the record of a run that says itself whether it passed."""
        self.figures[name] = dict(told)
        self.need(bool(told.get("pass")), f"{name}: {told.get('findings') or 'did not pass'}")


Line = Callable[[int], Awaitable[Outcome]]
"""Runs with a seed. What it raises is a reason as well."""


def told(name: str, outcome: Outcome, seed: int, seconds: float) -> str:
    """The JSON line of an outcome."""
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
