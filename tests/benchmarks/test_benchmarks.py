"""Every benchmark runs and prints. Only `make bench` judges the figures."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.benchmarks.figures import Verdict, median, quantile
from tests.benchmarks.registry import BENCHMARKS
from tests.benchmarks.sizes import QUICK

LONG = ("hanging", "ceilings")
"""Benchmarks that take most of a minute even in short form run with the fault runs."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.faults if name in LONG else ()) for name in BENCHMARKS],
)
async def test_a_benchmark_runs_and_prints(name: str) -> None:
    verdict = await BENCHMARKS[name](QUICK)
    assert verdict.broken == []
    assert verdict.name == name
    told = json.loads(verdict.line())
    measured = {what: value for what, value in told.items() if what.endswith(("_per_s", "_ms"))}
    assert measured
    assert all(value > 0 for value in measured.values()), measured


@pytest.mark.faults
async def test_what_postgres_is_made_to_do_is_counted() -> None:
    verdict = await BENCHMARKS["ceilings"](replace(QUICK, engines=("postgres",)))
    assert verdict.broken == []
    told = json.loads(verdict.line())
    for what in ("write", "delivery"):
        spent = told[f"postgres_a_{what}"]
        assert spent["statements"] > 0
        assert spent["wal_bytes"] > 0
    assert told["postgres_a_write"]["commits"] > 1
    sizes = told["postgres_bytes_as_written"]
    assert all(sizes[table] > 0 for table in ("events", "deliveries", "attempts")), sizes


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


@pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.001, 1)])
def test_quantiles_are_nearest_ranks(share: float, value: int) -> None:
    assert quantile(list(range(100, 0, -1)), share) == value
    assert median([3, 1, 2]) == 2
