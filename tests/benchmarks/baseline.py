"""The baseline of the benchmarks: the rates that they measured when it was kept, and where.

A rate is compared with that of the baseline where machine and disk are the same. Elsewhere only the
ratios to bare programs of the same run say something.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.benchmarks.figures import Verdict, rounded

FILE = Path(__file__).with_name("baseline.json")
LEAST = 0.9
"""The least share of a rate of the baseline; runs differ by less on a quiet machine."""
PLACE = ("processor", "cores", "memory_gib", "file_system")


def kept() -> dict[str, Any]:
    """Return the conditions, and the rates of each benchmark."""
    baseline: dict[str, Any] = json.loads(FILE.read_text())
    return baseline


def keep(verdict: Verdict, conditions: Mapping[str, Any]) -> None:
    """Make the rates of a run the baseline; what another machine measured goes."""
    before = kept()
    rates = before["rates"] if _same(before["conditions"], conditions) else {}
    rates |= {verdict.name: rates_of(verdict.figures)}
    FILE.write_text(json.dumps({"conditions": conditions, "rates": rates}, indent=1) + "\n")


def compare(verdict: Verdict, conditions: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    """Add each rate's share of the baseline `before`; on its machine a small one misses."""
    rates = before["rates"].get(verdict.name, {})
    shares = {
        name: rounded(rate / rates[name])
        for name, rate in rates_of(verdict.figures).items()
        if rates.get(name)
    }
    verdict.figures["of_baseline"] = shares
    if conditions["quiet"] and _same(before["conditions"], conditions):
        verdict.missed += [
            f"{name} is {share} of the baseline" for name, share in shares.items() if share < LEAST
        ]


def rates_of(figures: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Return the rates of the product, those of nested figures with their names before."""
    rates: dict[str, float] = {}
    for name, value in figures.items():
        if isinstance(value, Mapping):
            rates |= rates_of(value, f"{prefix}{name} ")
        elif name.endswith("_per_s") and not name.startswith(("bare", "raw", "statements")):
            rates[f"{prefix}{name}"] = float(value)
    return rates


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one[what] == other[what] for what in PLACE)
