"""The baseline of the benchmarks: what they measured when it was kept, and where, by name.

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
    """Return conditions and figures by the name of the benchmark."""
    baseline: dict[str, Any] = json.loads(FILE.read_text())
    return baseline


def keep(verdict: Verdict, conditions: Mapping[str, Any]) -> None:
    """Make the figures of a run the baseline."""
    entry = {"conditions": conditions, "figures": verdict.figures}
    FILE.write_text(json.dumps(kept() | {verdict.name: entry}, indent=1) + "\n")


def compare(verdict: Verdict, conditions: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    """Add each rate's share of the baseline `before`; on its machine a small one misses."""
    entry = before.get(verdict.name)
    if entry is None:
        return
    here = all(entry["conditions"][what] == conditions[what] for what in PLACE)
    rates = _rates(entry["figures"])
    shares = {
        name: rounded(rate / rates[name])
        for name, rate in _rates(verdict.figures).items()
        if rates.get(name)
    }
    verdict.figures["of_baseline"] = shares
    if here and conditions["quiet"]:
        verdict.missed += [
            f"{name} is {share} of the baseline" for name, share in shares.items() if share < LEAST
        ]


def _rates(figures: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Return the rates of the product, those of nested figures with their names before."""
    rates: dict[str, float] = {}
    for name, value in figures.items():
        if isinstance(value, Mapping):
            rates |= _rates(value, f"{prefix}{name} ")
        elif name.endswith("_per_s") and "bare" not in name and name != "statements_per_s":
            rates[f"{prefix}{name}"] = float(value)
    return rates
