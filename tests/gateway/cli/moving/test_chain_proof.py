"""A delivery log that the target alone has damaged sends the owner back."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import Any

import asyncpg
import pytest

from gateway.cli.moving.chain_proof import ChainProof
from gateway.cli.moving.live_copy import LiveCopy
from gateway.cli.moving.live_move import LiveMove
from gateway.cli.moving.owner_copy import OwnerCopy
from tests.support.moved import Pair, goes_on, has_moved, run

DAMAGE = """
update attempts set url = 'http://other' where (delivery_id, number) in (
  select delivery_id, number from attempts where place is not null and webhook_id = {0} limit 1)
"""
LOSE = """
delete from audit where id = (select min(id) from audit where owner_id = $1)
"""
WHY = "the delivery log is damaged in the target, not in the source"
AS_IT_IS = "It was so before, and moves as it is."


async def damage(url: str, webhook: str) -> None:
    """Change a row beside all guards, as a disk would."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("set session_replication_role = replica")
        assert await connection.execute(DAMAGE.format("$1"), webhook) == "UPDATE 1"
    finally:
        await connection.close()


def refused(pair: Pair) -> None:
    before = pair.source()
    assert WHY in run(pair, status=1)
    assert pair.states() == ["here", "here"]
    after = pair.source()
    assert after.feed == before.feed
    assert before.waiting <= after.waiting
    assert pair.there().of(0) == {}
    assert pair.guards() == [0, 0]


def test_damage_before_the_owner_is_closed(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    before = pair.source()
    copy = LiveCopy.all

    async def damaged(self: LiveCopy) -> None:
        await copy(self)
        await damage(pair.target, pair.house.webhook)

    with monkeypatch.context() as patch:
        patch.setattr(LiveCopy, "all", damaged)
        # He is not closed for this.
        patch.delattr(LiveMove, "_flip")
        refused(pair)
    run(pair)
    has_moved(pair, before)


def test_a_row_that_the_target_has_lost(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """To compare the numbers of all rows takes long, and the owner is not closed for it."""
    before = pair.source()
    copy = LiveCopy.all

    async def lost(self: LiveCopy) -> None:
        await copy(self)
        connection = await asyncpg.connect(pair.target)
        await connection.execute("set session_replication_role = replica")
        done = await connection.execute(LOSE, pair.house.mover)
        await connection.close()
        assert done == "DELETE 1"

    with monkeypatch.context() as patch:
        patch.setattr(LiveCopy, "all", lost)
        patch.delattr(LiveMove, "_flip")
        assert "audit has " in run(pair, status=1)
    run(pair)
    has_moved(pair, before)


def test_damage_after_the_owner_is_closed(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    advance = ChainProof.advance

    async def later(self: ChainProof, *of: Any) -> int:
        """Verify nothing before, as a command that is repeated."""
        if (await asyncio.to_thread(pair.states))[0] != "leaving":
            return 0
        await damage(pair.target, pair.house.webhook)
        return await advance(self, *of)

    with monkeypatch.context() as patch:
        patch.setattr(ChainProof, "advance", later)
        refused(pair)
    run(pair)
    goes_on(pair)


def test_damage_that_the_source_has_too(pair: Pair) -> None:
    before = pair.source()
    asyncio.run(damage(pair.house.url, pair.house.webhook))
    said = run(pair)
    assert f"Webhook {pair.house.webhook}, place " in said
    assert said.count(AS_IT_IS) == 1
    has_moved(pair, before)


def test_without_servers(offline: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    before = offline.source()
    copy = OwnerCopy.copy

    async def damaged(self: OwnerCopy, *ends: Any) -> None:
        await copy(self, *ends)
        assert await ends[1].run(DAMAGE.format("$1"), offline.house.webhook) == 1

    with monkeypatch.context() as patch:
        patch.setattr(OwnerCopy, "copy", damaged)
        assert WHY in run(offline, status=1)
    assert offline.there().of(0) == {}
    with closing(sqlite3.connect(offline.house.url.removeprefix("sqlite:///"))) as db, db:
        assert db.execute("select count(*) from owners").fetchone() == (0,)
        db.execute(DAMAGE.format("?"), (offline.house.webhook,))
    assert run(offline).count(AS_IT_IS) == 1
    has_moved(offline, before)
