"""Every benchmark holds its bars at full size; the tool tells what it finds."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.benchmarks import baseline
from tests.benchmarks.__main__ import BENCHMARKS
from tests.benchmarks.figures import FULL, Verdict, quantile
from tests.benchmarks.site import site

HERE = {
    "processor": "p", "cores": 2, "memory_gib": 4, "file_system": "ext4", "quiet": True,
}  # fmt: skip
BEFORE: dict[str, Any] = {
    "conditions": HERE, "rates": {"it": {"drain_per_s": 100, "at_10 events_per_s": 50}},
}  # fmt: skip


@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("name", BENCHMARKS)
async def test_its_bars_hold(name: str) -> None:
    verdict = await BENCHMARKS[name](FULL)
    told = json.loads(verdict.line())
    print(json.dumps(told))
    assert verdict.holds, verdict.missed + verdict.broken
    assert told["benchmark"] == name
    assert all(value > 0 for value in baseline.rates_of(told).values())


def test_a_missed_bar_is_said() -> None:
    verdict = Verdict("it")
    verdict.at_least("ratio", 0.69, 0.7)
    verdict.at_most("times", 1.51, 1.5)
    verdict.at_most("nothing", float("nan"), 1.5)
    verdict.at_least("just", 0.7, 0.7)
    assert verdict.missed == ["ratio 0.69 < 0.7", "times 1.51 > 1.5", "nothing nan > 1.5"]
    assert not verdict.holds


@pytest.mark.parametrize(
    ("other", "missed"),
    [({}, ["drain_per_s is 0.8 of the baseline"]), ({"cores": 8}, []), ({"quiet": False}, [])],
)
def test_a_slower_run_misses_on_the_same_quiet_machine(
    other: dict[str, Any], missed: list[str]
) -> None:
    figures = {"drain_per_s": 80, "bare_per_s": 100, "at_10": {"events_per_s": 55}}
    verdict = Verdict("it", dict[str, object](figures))
    baseline.compare(verdict, HERE | other, BEFORE)
    assert verdict.figures["of_baseline"] == {"drain_per_s": 0.8, "at_10 events_per_s": 1.1}
    assert verdict.missed == missed


def test_the_baseline_is_of_benchmarks_that_exist() -> None:
    assert baseline.kept()["rates"].keys() <= BENCHMARKS.keys()


async def test_a_run_that_loses_doubles_or_refuses_is_no_figure() -> None:
    async with site() as usual, usual.place("run", webhooks=2) as place:
        here = replace(usual, patience=3.0)
        with here.node(place) as node:
            run = partial(here.run, place, node, total=8)
            assert (await run(per_event=2)).seconds > 0
            with pytest.raises(RuntimeError, match="32 of 40 requests, 0"):
                await run(per_event=3)
            with pytest.raises(RuntimeError, match="48 of 40 requests, 0"):
                await run(per_event=1)
            with pytest.raises(RuntimeError, match="8 refused"):
                await run(expect=200)


@pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.001, 1)])
def test_quantiles_are_nearest_ranks(share: float, value: int) -> None:
    assert quantile(list(range(100, 0, -1)), share) == value
