"""An owner moves between two databases of any engines, with all that belongs to him."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.support.moved import goes_on, has_moved, run
from tests.support.movers import furnish, keys_at, look


def test_everything_moves_and_goes_on(db_url: str, target: str, tmp_path: Path) -> None:
    house = asyncio.run(furnish(db_url, tmp_path / "source.key"))
    keys_at(keys := tmp_path / "target.key")
    before = asyncio.run(look(db_url, house.owners))
    said = run(house, target, keys)
    assert f"Moved {house.email}" in said
    has_moved(house, target, before)
    asyncio.run(goes_on(house, target, keys))
    # Again does nothing.
    assert "0 rows are deleted" in run(house, target, keys)
