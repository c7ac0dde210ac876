"""Every benchmark runs and prints. Only `make bench` judges the figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.children import answer_of, child
from tests.benchmarks.figures import Verdict, median, quantile
from tests.benchmarks.load import request
from tests.benchmarks.registry import BENCHMARKS
from tests.benchmarks.sizes import FULL, QUICK

LONG = ("cells", "hanging", "slow_receivers", "onset", "growth", "growth_postgres")
"""Benchmarks that take most of a minute even in short form run with the fault runs."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.proof if name in LONG else ()) for name in BENCHMARKS],
)
async def test_a_benchmark_runs_and_prints(name: str) -> None:
    verdict = await BENCHMARKS[name](QUICK)
    assert verdict.broken == []
    assert verdict.name == name
    told = json.loads(verdict.line())
    measured = {what: value for what, value in told.items() if what.endswith(("_per_s", "_ms"))}
    assert measured
    assert all(value > 0 for value in measured.values()), measured


@pytest.mark.proof
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("name", BENCHMARKS)
async def test_its_bars_hold(name: str) -> None:
    verdict = await BENCHMARKS[name](FULL)
    print(verdict.line())
    assert verdict.holds, verdict.reasons


def test_a_missed_bar_is_said() -> None:
    verdict = Verdict("it")
    verdict.at_least("ratio", 0.69, 0.7)
    verdict.at_most("times", 1.51, 1.5)
    assert verdict.reasons == ["ratio 0.69 < 0.7", "times 1.51 > 1.5"]
    assert not verdict.holds


def test_a_figure_that_is_none_misses_its_bar() -> None:
    verdict = Verdict("it")
    verdict.at_least("ratio", float("nan"), 0.7)
    verdict.at_most("times", float("nan"), 1.5)
    assert len(verdict.missed) == 2


def test_a_bar_that_is_just_met_holds() -> None:
    verdict = Verdict("it")
    verdict.at_least("ratio", 0.7, 0.7)
    verdict.at_most("times", 1.5, 1.5)
    assert verdict.holds


@pytest.mark.slow
def test_a_load_with_a_total_sends_that_many(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with child("tests.benchmarks.receiver", log=log) as receiver:
        spec = {
            "port": receiver.json()["port"], "connections": 4, "total": 51, "seconds": 60,
            "expect": 200, "requests": [request("POST", "/any", b"{}")],
        }  # fmt: skip
        assert answer_of("tests.benchmarks.load", log, spec)["count"] == 51


@pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.001, 1)])
def test_quantiles_are_nearest_ranks(share: float, value: int) -> None:
    assert quantile(list(range(100, 0, -1)), share) == value
    assert median([3, 1, 2]) == 2
