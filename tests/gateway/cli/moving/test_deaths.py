"""`carteiro move` ends at every step and is repeated: nothing is lost, nothing is there twice."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from outbox.ids import Ids
from outbox.queue.upkeep.moved_owners import followed
from outbox.webhooks.key_files import read_key_file
from tests.gateway.cli.moving.dying_move import cut, killed
from tests.support.console import CONFIG
from tests.support.drain import drain, inbox
from tests.support.moved import Pair, goes_on, has_moved, run, standing
from tests.support.movers import opened
from tests.support.site import serving

End = Callable[[Pair, str, str], None]
CLOSED, COPIED, GONE = 5, 8, 10
"""The number of the transaction that closes the owner in the source, that has him in the target,
and that says so in the source. Further ones delete his rows."""
STEPS = [
    ("before", CLOSED, "here", False),
    ("after", CLOSED, "leaving", False),
    ("after", CLOSED + 1, "leaving", False),
    ("before", COPIED, "leaving", False),
    ("after", COPIED, "leaving", True),
    ("before", GONE, "leaving", True),
    ("after", GONE, "gone", True),
    ("after", GONE + 40, "gone", True),
    ("after", GONE + 90, "gone", True),
]
"""Where a command ends, where the owner is then by the source, and whether the target has him."""
LIVE_STEPS = [
    ("before", "stand.1", "here", "here"),
    ("after", "stand.1", "copying", "here"),
    ("before", "stand.2", "copying", "here"),
    ("after", "stand.2", "copying", "arriving"),
    ("after", "_page.9", "copying", "arriving"),
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
"""Where a command ends, and the states in the source and in the target then.

Each command goes on from where the one before ended.
"""
ENDS = pytest.mark.parametrize("end", [cut, pytest.param(killed, marks=pytest.mark.proof)])


@ENDS
def test_it_goes_on_from_each_step(offline: Pair, tmp_path: Path, end: End) -> None:
    before = offline.source()
    for when, number, state, has in STEPS:
        folder = tmp_path / f"{when}{number}"
        folder.mkdir()
        for name in ("test.db", "source.key", "target.key"):
            shutil.copy(tmp_path / name, folder)
        url = f"sqlite:///{folder}/test.db"
        house = replace(offline.house, url=url, keys=folder / "source.key")
        pair = Pair(house, f"sqlite:///{folder}/target.db", folder / "target.key")
        end(pair, when, str(number))
        assert pair.states()[0] == state
        assert bool(asyncio.run(standing(pair.target, house.mover)).move_id) == has
        run(pair)
        has_moved(pair, before)
    goes_on(pair)


@ENDS
def test_a_live_move_goes_on_from_each_step(pair: Pair, end: End) -> None:
    before = pair.source()
    for when, step, here, there in LIVE_STEPS:
        end(pair, when, step)
        assert pair.states() == [here, there], (when, step)
    run(pair)
    has_moved(pair, before)
    assert pair.guards() == [0, 0]
    goes_on(pair)


def test_a_live_move_goes_back_once_the_owner_is_closed(pair: Pair) -> None:
    before = pair.source()
    cut(pair, "after", "_leave.1")
    assert pair.states() == ["leaving", "arriving"]
    assert "stays in" in run(pair, "--cancel")
    after = pair.source()
    assert after.feed == before.feed
    assert before.waiting <= after.waiting
    assert pair.there().of(0) == {}
    assert pair.states() == ["here", "here"]
    assert pair.guards() == [0, 0]


ATTEMPTS = "select count(*) from attempts where owner_id = ?"
WAITING = 2
"""Events of the other owner that his webhook without failures has not got."""


def test_a_server_that_starts_meanwhile_leaves_the_owner_alone(offline: Pair) -> None:
    cut(offline, "after", str(CLOSED))
    before, attempts = offline.source(), _attempts(offline)
    sent = asyncio.run(_serve(offline))
    assert sent == {offline.house.owners[1]}
    assert _attempts(offline) == attempts
    run(offline)
    assert offline.there().feed == before.feed


def _attempts(pair: Pair) -> int:
    with closing(sqlite3.connect(pair.house.url.removeprefix("sqlite:///"))) as db:
        [(count,)] = db.execute(ATTEMPTS, [pair.house.mover])
    return int(count)


async def _serve(pair: Pair) -> set[str]:
    """Serve the source until the other owner's deliveries arrived; return whose arrived."""
    house, other = pair.house, pair.house.owners[1]
    db = await opened(house.url)
    try:
        ring = read_key_file(house.keys, Ids())
        async with inbox() as receiver, followed(db), serving(db, CONFIG) as site:
            await db.write(
                lambda tx: tx.run("update webhooks set url = $1 || '/' || owner_id", receiver.url)
            )
            async with site.http.post(
                "/api/contacts", json={"name": "Refused"}, headers=house.headers
            ) as answer:
                assert (answer.status, (await answer.json())["code"]) == (503, "moving")
                assert answer.headers["Retry-After"] == "1"
            async with drain(db, ring):
                await receiver.until(WAITING, f"/{other}")
            return {one.path[1:] for one in receiver.got}
    finally:
        await db.close()
