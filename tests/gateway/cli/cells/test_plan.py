"""Which owners to move so that cells have about the same load."""

from __future__ import annotations

from gateway.cli.cells.loads import Owner, plan


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
