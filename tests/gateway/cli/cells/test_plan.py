"""Which owners to move so that cells have about the same load."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.cells.loads import WITHIN, Owner, plan

LOADS = st.lists(st.integers(0, 1_000), max_size=30)


def cells(*loads: list[int]) -> dict[str, list[Owner]]:
    return {
        f"c{cell}": [Owner(f"{cell}-{number}@x.example", load) for number, load in enumerate(found)]
        for cell, found in enumerate(loads)
    }


def test_few_owners_move() -> None:
    steps = plan(cells([100, 60, 50, 40], [], [10]))
    assert [(one.email, one.source, one.target) for one in steps] == [
        ("0-0@x.example", "c0", "c1"), ("0-1@x.example", "c0", "c2"),
    ]  # fmt: skip


def test_cells_in_balance_stay() -> None:
    assert plan(cells([50, 50], [100], [95, 5])) == []
    assert plan(cells([], [])) == []
    assert plan({}) == []
    # One owner is more than a cell should have, and nobody can part him.
    assert plan(cells([500], [], [])) == []


@given(st.lists(LOADS, min_size=1, max_size=5))
def test_a_plan_ends_and_brings_cells_together(loads: list[list[int]]) -> None:
    found = cells(*loads)
    stands = Counter({name: sum(owner.load for owner in here) for name, here in found.items()})
    where = {owner.email: name for name, here in found.items() for owner in here}
    spread = max(stands.values()) - min(stands.values())
    for step in plan(found):
        assert where[step.email] == step.source
        where[step.email] = step.target
        stands[step.source] -= step.load
        stands[step.target] += step.load
    after = max(stands.values()) - min(stands.values())
    assert after <= spread
    mean = sum(stands.values()) / len(stands)
    biggest = max((owner.load for here in found.values() for owner in here), default=0)
    # What is left is less than the owners that are too big to move.
    assert after <= max(biggest, 2 * WITHIN * mean)
