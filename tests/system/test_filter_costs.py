"""Conditions cost the fan-out of other webhooks no statement."""

from __future__ import annotations

import pytest

from outbox.queue.drain import budget
from tests.support.engines import Engine
from tests.system.filter_costs import run_filter_costs


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_small_events_are_judged_without_a_statement(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What conditions cost counts in the budget of a round: here it shall not change their number.
    monkeypatch.setitem(budget.ROUND, engine, 1_000_000_000)
    told = await run_filter_costs(engine, rounds=1)
    assert told["pass"], told
    statements = told["statements"]
    assert statements["none"] == statements["passing"]
    # A quarter as many events.
    assert 4 * statements["large"] > statements["passing"]
