"""Conditions cost the fan-out of other webhooks no statement."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.filter_costs import run_filter_costs


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_small_events_are_judged_without_a_statement(engine: Engine) -> None:
    told = await run_filter_costs(engine, rounds=1)
    assert told["pass"], told
    statements, units = told["statements"], told["units"]
    # What conditions cost counts in the budget of a round, so a few more rounds are taken.
    assert units["none"] <= units["passing"] <= 1.1 * units["none"]
    more = units["passing"] - units["none"]
    assert statements["passing"] - statements["none"] <= more * statements["none"] / units["none"]
    # A quarter as many events.
    assert 4 * statements["large"] > statements["passing"]
