"""What a move has left whose command never came back ends by itself after a week."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import pytest

from gateway.cli.moving.chain_proof import ChainProof
from gateway.cli.moving.live_move import _open, _rest
from gateway.server.upkeep import left_moves
from gateway.server.upkeep.left_moves import LeftMoves
from outbox import database
from outbox.clock import Clock, SystemClock
from outbox.database.postgres.move_connection import open_beside
from outbox.database.transaction import Database
from outbox.database.transfer import Place
from outbox.durations import SECOND
from outbox.errors import CannotStart, DatabaseUnavailable
from outbox.ids import Ids
from outbox.queue.upkeep import ended_moves, owner_moves
from outbox.queue.upkeep.owner_moves import MoveState
from tests.gateway.cli.moving.dying_move import cut
from tests.support.moved import Pair, goes_on, has_moved, run

WEEK = 7 * 86_400 * SECOND
ON_POSTGRES = pytest.mark.parametrize("db_url", ["postgres"], indirect=True)


class Later(SystemClock):
    """A clock that is a week ahead, and a minute."""

    def wall(self) -> int:
        return super().wall() + WEEK + 60 * SECOND


async def duty(url: str, clock: Clock) -> None:
    """Run what the leader runs every hour."""
    db = await database.open(url, clock=clock, ids=Ids(), serving=True)
    try:
        await db.write(ended_moves.purge, 100)
        await LeftMoves(db).run_once()
    finally:
        await db.close()


def a_week_later(url: str) -> None:
    asyncio.run(duty(url, Later()))


def test_a_copy_that_nobody_goes_on_with(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.queue.upkeep.owner_rows.SLICE", 2)
    monkeypatch.setattr(left_moves, "SLICE", 2)
    before = pair.source()
    cut(pair, "after", "_apply.1")
    assert pair.states() == ["copying", "arriving"]
    assert pair.there().of(0)
    left = pair.guards()
    # Nothing ends within a week, nor while a command runs.
    asyncio.run(_meanwhile(pair))
    assert pair.states() == ["copying", "arriving"]
    assert pair.guards() == left
    for url in (pair.house.url, pair.target):
        a_week_later(url)
    assert pair.guards() == [0, 0]
    assert pair.states() == ["here", "here"]
    there = pair.there()
    assert (there.of(0), there.mentions) == ({}, {})
    run(pair)
    has_moved(pair, before)


async def _meanwhile(pair: Pair) -> None:
    async with AsyncExitStack() as stack:
        for url in (pair.house.url, pair.target):
            await duty(url, SystemClock())
            await stack.enter_async_context(open_beside(Place(url, SystemClock(), Ids()), 1))
            await duty(url, Later())


def test_a_closed_owner_waits_and_his_move_begins_anew(pair: Pair) -> None:
    before = pair.source()
    cut(pair, "before", "_open.1")
    a_week_later(pair.house.url)
    assert pair.guards()[0] > 0
    a_week_later(pair.target)
    assert pair.states() == ["leaving", "here"]
    run(pair)
    has_moved(pair, before)
    goes_on(pair)


def test_an_owner_who_is_gone(pair: Pair) -> None:
    before = pair.source()
    cut(pair, "after", "_open.1")
    cut(pair, "after", "stand.1")
    assert pair.states() == ["gone", "here"]
    assert pair.guards()[1] > 0
    for url in (pair.house.url, pair.target):
        a_week_later(url)
    assert pair.guards() == [0, 0]
    assert pair.states() == ["gone", "here"]
    has_moved(pair, before)


async def _locked(pair: Pair) -> None:
    connection = await asyncpg.connect(pair.house.url)
    async with connection.transaction():
        await connection.execute("lock table contacts in access share mode")
        with pytest.raises(DatabaseUnavailable):
            await duty(pair.house.url, Later())
    await connection.close()
    await duty(pair.house.url, Later())


def test_a_table_in_use_is_left_for_the_next_time(pair: Pair) -> None:
    cut(pair, "after", "_apply.1")
    asyncio.run(_locked(pair))
    assert pair.guards()[0] == 0


async def _given_up(url: str, owner_id: str) -> None:
    db = await database.open(url, clock=Later(), ids=Ids(), serving=True)
    await db.write(ended_moves.take, owner_id)
    await db.close()


def test_the_target_opens_nobody_whom_it_gave_up(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    advance = ChainProof.advance

    async def meanwhile(self: ChainProof, *of: Any) -> int:
        read = await advance(self, *of)
        if (await asyncio.to_thread(pair.states))[0] == "leaving":
            await _given_up(pair.target, pair.house.mover)
        return read

    with monkeypatch.context() as patch:
        patch.setattr(ChainProof, "advance", meanwhile)
        # The passes say that they go on, and this comes after the last one.
        assert "the target gave this move up" in run(pair, status=1)
    assert pair.states() == ["leaving", "arriving"]
    assert "deletes what had arrived" in run(pair, status=1)
    a_week_later(pair.target)
    run(pair)
    assert pair.states() == ["gone", "here"]


@ON_POSTGRES
async def test_the_target_opens_only_this_move(db: Database) -> None:
    here = MoveState("here", "m", "there")
    for other in (MoveState("arriving", "n", "there"), MoveState("gone", "m", "there")):
        await db.write(owner_moves.stand, "o", other)
        with pytest.raises(CannotStart, match="gave this move up"):
            await db.write(_open, "o", here, (None, None))
    await db.write(owner_moves.stand, "o", MoveState("arriving", "m", "there"))
    await db.write(_open, "o", here, (None, None))
    assert await db.read(owner_moves.standing, "o") == here


@ON_POSTGRES
async def test_a_move_that_was_given_up_meanwhile_closes_nobody(db: Database) -> None:
    """Its notes may be gone."""
    resting = MoveState("resting", "m", "there")
    with pytest.raises(CannotStart, match="given up"):
        await db.write(_rest, "o", resting)
    await db.write(owner_moves.stand, "o", MoveState("copying", "another", "there"))
    with pytest.raises(CannotStart, match="given up"):
        await db.write(_rest, "o", resting)
    await db.write(owner_moves.stand, "o", MoveState("copying", "m", "there"))
    await db.write(_rest, "o", resting)
    assert await db.read(owner_moves.standing, "o") == resting


@ON_POSTGRES
async def test_a_move_that_ended_before_it_made_triggers(db: Database, db_url: str) -> None:
    await db.write(owner_moves.stand, "o", MoveState("arriving", "m", "there"))
    await db.write(owner_moves.stand, "g", MoveState("gone", "m", "there"))
    await duty(db_url, Later())
    assert list(await db.read(owner_moves.closed_owners)) == ["g"]
