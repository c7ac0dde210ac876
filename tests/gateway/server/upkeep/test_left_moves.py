"""What a move has left whose command never came back ends by itself after a week."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from gateway.cli.moving.live_copy import LiveCopy
from gateway.cli.moving.live_move import _open
from gateway.server.upkeep import left_moves
from gateway.server.upkeep.left_moves import LeftMoves
from outbox import database
from outbox.clock import SystemClock
from outbox.database.postgres.beside import open_beside
from outbox.database.transaction import Database
from outbox.database.transfer import Place
from outbox.durations import SECOND
from outbox.errors import CannotStart, DatabaseUnavailable
from outbox.ids import Ids
from outbox.queue.upkeep import ended_moves, owner_moves
from outbox.queue.upkeep.owner_moves import Standing
from tests.gateway.cli.moving.test_deaths import killed
from tests.gateway.cli.moving.test_live_deaths import Pair, guards, pair, states
from tests.support.moved import goes_on, has_moved, run
from tests.support.movers import look

__all__ = ["pair"]
WEEK = 7 * 86_400 * SECOND


class Later(SystemClock):
    """A clock that is a week ahead, and a minute."""

    def wall(self) -> int:
        return super().wall() + WEEK + 60 * SECOND


@asynccontextmanager
async def later(url: str) -> AsyncIterator[Database]:
    db = await database.open(url, clock=Later(), ids=Ids(), serving=True)
    try:
        yield db
    finally:
        await db.close()


async def duty(url: str) -> None:
    """Run what the leader runs every hour, a week later."""
    async with later(url) as db:
        await db.write(ended_moves.purge, 100)
        await LeftMoves(db).run_once()


def ends(pair: Pair) -> None:
    for url in (pair.house.url, pair.target):
        asyncio.run(duty(url))
        assert asyncio.run(guards(url)) == 0


def test_a_copy_that_nobody_goes_on_with(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.queue.upkeep.owner_rows.SLICE", 2)
    monkeypatch.setattr(left_moves, "SLICE", 2)
    before = asyncio.run(look(pair.house.url, pair.house.owners))
    killed(pair.house, pair.target, pair.keys, "after", "_apply.1")
    assert asyncio.run(states(pair)) == ["copying", "arriving"]
    assert asyncio.run(look(pair.target, pair.house.owners)).of(0)
    ends(pair)
    assert asyncio.run(states(pair)) == ["here", "here"]
    there = asyncio.run(look(pair.target, pair.house.owners))
    assert (there.of(0), there.mentions) == ({}, {})
    run(pair.house, pair.target, pair.keys)
    has_moved(pair.house, pair.target, before)
    asyncio.run(goes_on(pair.house, pair.target, pair.keys))


def test_a_closed_owner_waits_and_his_move_begins_anew(pair: Pair) -> None:
    before = asyncio.run(look(pair.house.url, pair.house.owners))
    killed(pair.house, pair.target, pair.keys, "before", "_open.1")
    asyncio.run(duty(pair.house.url))
    assert asyncio.run(guards(pair.house.url)) > 0
    asyncio.run(duty(pair.target))
    assert asyncio.run(states(pair)) == ["leaving", "here"]
    run(pair.house, pair.target, pair.keys)
    has_moved(pair.house, pair.target, before)
    asyncio.run(goes_on(pair.house, pair.target, pair.keys))


def test_an_owner_who_is_gone(pair: Pair) -> None:
    before = asyncio.run(look(pair.house.url, pair.house.owners))
    killed(pair.house, pair.target, pair.keys, "after", "stand.1")
    killed(pair.house, pair.target, pair.keys, "after", "_open.1")
    killed(pair.house, pair.target, pair.keys, "after", "stand.1")
    assert asyncio.run(states(pair)) == ["gone", "here"]
    assert asyncio.run(guards(pair.target)) > 0
    ends(pair)
    assert asyncio.run(states(pair)) == ["gone", "here"]
    has_moved(pair.house, pair.target, before)


async def _runs(pair: Pair) -> None:
    place = Place(pair.target, SystemClock(), Ids())
    for url in (pair.house.url, pair.target):
        async with open_beside(Place(url, place.clock, place.ids)):
            await duty(url)


def test_nothing_ends_while_a_command_runs(pair: Pair) -> None:
    killed(pair.house, pair.target, pair.keys, "after", "_apply.1")
    left = [asyncio.run(guards(url)) for url in (pair.house.url, pair.target)]
    asyncio.run(_runs(pair))
    assert asyncio.run(states(pair)) == ["copying", "arriving"]
    assert [asyncio.run(guards(url)) for url in (pair.house.url, pair.target)] == left


def test_nothing_ends_within_a_week(pair: Pair) -> None:
    before = asyncio.run(look(pair.house.url, pair.house.owners))
    killed(pair.house, pair.target, pair.keys, "after", "_apply.1")
    asyncio.run(_soon(pair))
    assert asyncio.run(states(pair)) == ["copying", "arriving"]
    run(pair.house, pair.target, pair.keys)
    has_moved(pair.house, pair.target, before)


async def _soon(pair: Pair) -> None:
    for url in (pair.house.url, pair.target):
        db = await database.open(url, clock=SystemClock(), ids=Ids(), serving=True)
        await db.write(ended_moves.purge, 100)
        await LeftMoves(db).run_once()
        await db.close()


async def _locked(pair: Pair) -> None:
    connection = await asyncpg.connect(pair.house.url)
    async with connection.transaction():
        await connection.execute("lock table contacts in access share mode")
        with pytest.raises(DatabaseUnavailable):
            await duty(pair.house.url)
    await connection.close()
    await duty(pair.house.url)


def test_a_table_in_use_is_left_for_the_next_time(pair: Pair) -> None:
    killed(pair.house, pair.target, pair.keys, "after", "_apply.1")
    asyncio.run(_locked(pair))
    assert asyncio.run(guards(pair.house.url)) == 0


async def _given_up(url: str, owner_id: str) -> None:
    async with later(url) as db:
        await db.write(ended_moves.take, owner_id)


def test_the_target_opens_nobody_whom_it_gave_up(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    equal = LiveCopy.must_be_equal

    async def meanwhile(self: LiveCopy) -> None:
        await equal(self)
        await _given_up(pair.target, pair.house.mover)

    with monkeypatch.context() as patch:
        patch.setattr(LiveCopy, "must_be_equal", meanwhile)
        # The passes say that they go on, and this comes after the last one.
        assert "the target gave this move up" in run(pair.house, pair.target, pair.keys, status=1)
    assert asyncio.run(states(pair)) == ["leaving", "arriving"]
    assert "deletes what had arrived" in run(pair.house, pair.target, pair.keys, status=1)
    asyncio.run(duty(pair.target))
    run(pair.house, pair.target, pair.keys)
    assert asyncio.run(states(pair)) == ["gone", "here"]


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_the_target_opens_only_this_move(db: Database) -> None:
    here = Standing("here", "m", "there")
    for other in (Standing("arriving", "n", "there"), Standing("gone", "m", "there")):
        await db.write(owner_moves.stand, "o", other)
        with pytest.raises(CannotStart, match="gave this move up"):
            await db.write(_open, "o", here, (None, None))
    await db.write(owner_moves.stand, "o", Standing("arriving", "m", "there"))
    await db.write(_open, "o", here, (None, None))
    assert await db.read(owner_moves.standing, "o") == here


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_a_move_that_ended_before_it_made_triggers(db: Database, db_url: str) -> None:
    await db.write(owner_moves.stand, "o", Standing("arriving", "m", "there"))
    await db.write(owner_moves.stand, "g", Standing("gone", "m", "there"))
    await duty(db_url)
    assert list(await db.read(owner_moves.elsewhere)) == ["g"]
