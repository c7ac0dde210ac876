"""With statistics from an empty queue, statements still do not scan the tables (B2, R33)."""

from __future__ import annotations

import pytest

from tests.support.faults import sizes
from tests.support.versions import versions
from tests.system.measured import Statement, Unit
from tests.system.plans import CLAIM, Size, judged, run_plans


@sizes("size", large=Size())
@pytest.mark.parametrize("which", ["oldest", "newest"])
async def test_a_queue_that_fills_up_later_keeps_its_plans(which: str, size: Size) -> None:
    there = versions()
    told = await run_plans(size, min(there) if which == "oldest" else max(there))
    assert told["pass"], told


def test_a_claim_that_walks_a_table_is_seen() -> None:
    taken = "update deliveries set state = 'in_flight' where id in (select 1) returning id"
    dear = Unit("take", [Statement(taken, 100_000, 0.1, CLAIM)])
    assert f"a claim of {CLAIM} touched 100000 buffers" in judged([dear])[1]
    fair = Unit("take", [Statement(taken, 1_000, 0.1, CLAIM)])
    assert not any("touched" in wrong for wrong in judged([fair])[1])


def test_a_run_without_its_statements_shows_nothing() -> None:
    wrong = judged([])[1]
    assert len(wrong) > 5
    assert all(what.endswith("nothing is shown") for what in wrong)
