"""A live move whose command is killed at each of its steps goes on, or goes back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest

from outbox.queue.upkeep import owner_moves
from tests.gateway.cli.moving.test_deaths import killed
from tests.support.databases import PostgresServer
from tests.support.moved import goes_on, has_moved, run
from tests.support.movers import House, furnish, keys_at, look, opened

Step = tuple[str, str, str, str]
STEPS: list[Step] = [
    ("before", "stand.1", "here", "here"),
    ("after", "stand.1", "copying", "here"),
    ("before", "stand.2", "copying", "here"),
    ("after", "stand.2", "copying", "arriving"),
    ("after", "_clear.1", "copying", "arriving"),
    ("before", "_apply.1", "copying", "arriving"),
    ("after", "_apply.1", "copying", "arriving"),
    ("before", "_rest.1", "copying", "arriving"),
    ("after", "_rest.1", "resting", "arriving"),
    ("before", "_leave.1", "resting", "arriving"),
    ("after", "_leave.1", "leaving", "arriving"),
    ("before", "_apply.1", "leaving", "arriving"),
    ("after", "_apply.1", "leaving", "arriving"),
    ("before", "_open.1", "leaving", "arriving"),
    ("after", "_open.1", "leaving", "here"),
    ("before", "stand.1", "leaving", "here"),
    ("after", "stand.1", "gone", "here"),
    ("before", "forget_changes.1", "gone", "here"),
]
"""Where a command is killed, and the states in the source and in the target then.

Each command goes on from where the one before was killed.
"""
FEW = [STEPS[8], STEPS[14], STEPS[16]]
GUARDS = """
select (select count(*) from pg_proc where proname like 'moving%')
  + (select count(*) from pg_trigger where tgname like 'moving%')
  + (select count(*) from move_changes)
"""


@dataclass(frozen=True)
class Pair:
    """A house and the empty database beside it."""

    house: House
    target: str
    keys: Path


@pytest.fixture
def pair(tmp_path: Path, postgres_server: PostgresServer) -> Iterator[Pair]:
    with asyncio.Runner() as runner:
        source = runner.run(postgres_server.fresh())
        target = runner.run(postgres_server.fresh())
        house = runner.run(furnish(source, tmp_path / "source.key"))
        keys_at(keys := tmp_path / "target.key")
        yield Pair(house, target, keys)
        for url in (source, target):
            runner.run(postgres_server.drop(url))


async def states(pair: Pair) -> list[str]:
    found = []
    for url in (pair.house.url, pair.target):
        db = await opened(url)
        found.append((await db.read(owner_moves.standing, pair.house.mover)).state)
        await db.close()
    return [str(one) for one in found]


async def guards(url: str) -> int:
    """Return how much is left of the guards and their notes."""
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval(GUARDS))
    finally:
        await connection.close()


def dies_at(pair: Pair, steps: list[Step]) -> None:
    before = asyncio.run(look(pair.house.url, pair.house.owners))
    for when, step, here, there in steps:
        killed(pair.house, pair.target, pair.keys, when, step)
        assert asyncio.run(states(pair)) == [here, there], (when, step)
    run(pair.house, pair.target, pair.keys)
    has_moved(pair.house, pair.target, before)
    for url in (pair.house.url, pair.target):
        assert asyncio.run(guards(url)) == 0
    asyncio.run(goes_on(pair.house, pair.target, pair.keys))


def test_it_goes_back_and_then_goes_on_after_kills(pair: Pair) -> None:
    before = asyncio.run(look(pair.house.url, pair.house.owners))
    killed(pair.house, pair.target, pair.keys, "after", "_leave.1")
    assert asyncio.run(states(pair)) == ["leaving", "arriving"]
    assert "stays in" in run(pair.house, pair.target, pair.keys, "--cancel")
    after = asyncio.run(look(pair.house.url, pair.house.owners))
    assert after.feed == before.feed
    assert before.waiting <= after.waiting
    assert asyncio.run(look(pair.target, pair.house.owners)).of(0) == {}
    assert asyncio.run(states(pair)) == ["here", "here"]
    for url in (pair.house.url, pair.target):
        assert asyncio.run(guards(url)) == 0
    dies_at(pair, FEW)


@pytest.mark.proof
def test_it_goes_on_after_a_kill_at_each_step(pair: Pair) -> None:
    dies_at(pair, STEPS)
