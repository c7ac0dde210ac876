"""A delivery log that the target alone has damaged sends the owner back."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from gateway.cli.moving.chain_proof import ChainProof
from gateway.cli.moving.live_copy import LiveCopy
from gateway.cli.moving.owner_copy import OwnerCopy
from tests.gateway.cli.moving.test_live_deaths import Pair, guards, pair, states
from tests.support.databases import SqliteFiles
from tests.support.moved import goes_on, has_moved, run
from tests.support.movers import furnish, keys_at, look

__all__ = ["pair"]
DAMAGE = """
update attempts set url = 'http://other' where (delivery_id, number) in (
  select delivery_id, number from attempts where place is not null and webhook_id = {0} limit 1)
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
    before = asyncio.run(look(pair.house.url, pair.house.owners))
    assert WHY in run(pair.house, pair.target, pair.keys, status=1)
    assert asyncio.run(states(pair)) == ["here", "here"]
    after = asyncio.run(look(pair.house.url, pair.house.owners))
    assert after.feed == before.feed
    assert before.waiting <= after.waiting
    assert asyncio.run(look(pair.target, pair.house.owners)).of(0) == {}
    for url in (pair.house.url, pair.target):
        assert asyncio.run(guards(url)) == 0


def test_damage_before_the_owner_is_closed(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    before = asyncio.run(look(pair.house.url, pair.house.owners))
    copy = LiveCopy.all

    async def damaged(self: LiveCopy) -> None:
        await copy(self)
        await damage(pair.target, pair.house.webhook)

    with monkeypatch.context() as patch:
        patch.setattr(LiveCopy, "all", damaged)
        # He is not closed for this.
        patch.delattr(LiveCopy, "must_be_equal")
        refused(pair)
    run(pair.house, pair.target, pair.keys)
    has_moved(pair.house, pair.target, before)
    asyncio.run(goes_on(pair.house, pair.target, pair.keys))


def test_damage_after_the_owner_is_closed(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    advance = ChainProof.advance
    closed: list[LiveCopy] = []

    async def later(self: ChainProof, *of: Any) -> int:
        """Verify nothing before, as a command that is repeated."""
        return await advance(self, *of) if closed else 0

    async def equal(self: LiveCopy) -> None:
        closed.append(self)
        await damage(pair.target, pair.house.webhook)

    with monkeypatch.context() as patch:
        patch.setattr(ChainProof, "advance", later)
        patch.setattr(LiveCopy, "must_be_equal", equal)
        refused(pair)
    run(pair.house, pair.target, pair.keys)
    asyncio.run(goes_on(pair.house, pair.target, pair.keys))


def test_damage_that_the_source_has_too(pair: Pair) -> None:
    before = asyncio.run(look(pair.house.url, pair.house.owners))
    asyncio.run(damage(pair.house.url, pair.house.webhook))
    said = run(pair.house, pair.target, pair.keys)
    assert f"Webhook {pair.house.webhook}, place " in said
    assert said.count(AS_IT_IS) == 1
    has_moved(pair.house, pair.target, before)


def test_without_servers(
    tmp_path: Path, sqlite_files: SqliteFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = asyncio.run(sqlite_files.fresh(tmp_path)), f"sqlite:///{tmp_path}/target.db"
    house = asyncio.run(furnish(source, tmp_path / "source.key"))
    keys_at(keys := tmp_path / "target.key")
    before = asyncio.run(look(source, house.owners))
    copy = OwnerCopy.copy

    async def damaged(self: OwnerCopy, *ends: Any) -> None:
        await copy(self, *ends)
        assert await ends[1].run(DAMAGE.format("$1"), house.webhook) == 1

    with monkeypatch.context() as patch:
        patch.setattr(OwnerCopy, "copy", damaged)
        assert WHY in run(house, target, keys, status=1)
    assert asyncio.run(look(target, house.owners)).of(0) == {}
    with closing(sqlite3.connect(source.removeprefix("sqlite:///"))) as db, db:
        assert db.execute("select count(*) from owners").fetchone() == (0,)
        db.execute(DAMAGE.format("?"), (house.webhook,))
    assert run(house, target, keys).count(AS_IT_IS) == 1
    has_moved(house, target, before)
