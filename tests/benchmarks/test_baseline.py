"""A run is compared with the baseline of its machine."""

from __future__ import annotations

from typing import Any

import pytest

from tests.benchmarks import baseline
from tests.benchmarks.figures import Verdict
from tests.benchmarks.registry import BENCHMARKS

HERE = {
    "processor": "p", "cores": 2, "memory_gib": 4, "file_system": "ext4", "quiet": True,
}  # fmt: skip
BEFORE: dict[str, Any] = {
    "it": {
        "conditions": HERE,
        "figures": {"drain_per_s": 100, "bare_per_s": 500, "at_10": {"events_per_s": 50}},
    }
}


def run() -> Verdict:
    figures = {"drain_per_s": 80, "bare_per_s": 100, "at_10": {"events_per_s": 55}}
    return Verdict("it", dict[str, object](figures))


def test_the_baseline_is_of_benchmarks_that_exist() -> None:
    assert baseline.kept().keys() <= BENCHMARKS.keys()
    assert all(baseline._rates(entry["figures"]) for entry in baseline.kept().values())


def test_a_slower_run_misses_on_the_same_machine() -> None:
    verdict = run()
    baseline.compare(verdict, HERE, BEFORE)
    assert verdict.figures["of_baseline"] == {"drain_per_s": 0.8, "at_10 events_per_s": 1.1}
    assert verdict.missed == ["drain_per_s is 0.8 of the baseline"]


@pytest.mark.parametrize("other", [{"cores": 8}, {"quiet": False}])
def test_another_or_a_busy_machine_has_no_bar(other: dict[str, Any]) -> None:
    verdict = run()
    baseline.compare(verdict, HERE | other, BEFORE)
    assert verdict.figures["of_baseline"]
    assert verdict.holds
