"""A copy that takes long tells the servers of both databases that it goes on."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from gateway.cli.moving import live_copy
from outbox.database.transaction import Tx
from outbox.queue.upkeep import owner_moves
from tests.support.moved import Pair, run

DATABASE = "select current_database() as name"


def touched(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Move the owner; return the databases that were told, in order."""
    told: list[str] = []
    touch = owner_moves.touch

    async def seen(tx: Tx, owner_id: str) -> None:
        assert owner_id == pair.house.mover
        row = await tx.one(DATABASE)
        assert row is not None
        told.append(row["name"])
        await touch(tx, owner_id)

    monkeypatch.setattr(owner_moves, "touch", seen)
    run(pair)
    return told


def test_within_a_long_copy(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_copy, "TOUCH_SECONDS", 0.0)
    told = touched(pair, monkeypatch)
    # The source is read in one snapshot meanwhile.
    assert told[:5] == [urlsplit(pair.target).path[1:]] * 5
