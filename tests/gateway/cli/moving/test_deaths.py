"""`carteiro move` is killed at every step and repeated: nothing is lost, nothing is there twice."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from outbox.queue.upkeep import owner_moves
from outbox.queue.upkeep.owner_moves import Standing
from tests.support.databases import SqliteFiles
from tests.support.moved import goes_on, has_moved, run, settings, words
from tests.support.movers import House, furnish, keys_at, look, opened
from tests.support.process import environment

CLOSED, COPIED, GONE = 5, 8, 10
"""The number of the transaction that closes the owner in the source, that has him in the target,
and that says so in the source. Further ones delete his rows."""
STEPS = {
    ("before", CLOSED): "here",
    ("after", CLOSED): "leaving",
    ("after", CLOSED + 1): "leaving",
    ("before", COPIED): "leaving",
    ("after", COPIED): "leaving",
    ("before", GONE): "leaving",
    ("after", GONE): "gone",
    ("after", GONE + 40): "gone",
    ("after", GONE + 90): "gone",
}
"""Where the owner is after each kill, by the source."""
HAS = {
    ("after", COPIED),
    ("before", GONE),
    ("after", GONE),
    ("after", GONE + 40),
    ("after", GONE + 90),
}
"""The kills after which the target has his rows."""


def killed(house: House, target: str, keys: Path, when: str, number: int | str) -> None:
    """Run the command until it is killed."""
    done = subprocess.run(
        [
            sys.executable, "-m", "tests.gateway.cli.moving.dying_move", when, str(number),
            *words(house, target, keys),
        ],
        cwd=keys.parent, env=environment(keys.parent, **settings(house)), check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == -9, (when, number, done.stdout, done.stderr)


def stands(house: House, target: str, when: str, number: int) -> None:
    """Check that the process was killed where it should."""
    assert asyncio.run(_standing(house.url, house.mover)).state == STEPS[when, number]
    there = asyncio.run(_standing(target, house.mover))
    assert bool(there.move_id) == ((when, number) in HAS)


async def _standing(url: str, owner_id: str) -> Standing:
    db = await opened(url)
    try:
        return await db.read(owner_moves.standing, owner_id)
    finally:
        await db.close()


def test_it_goes_on_after_a_kill_at_each_step(tmp_path: Path, sqlite_files: SqliteFiles) -> None:
    (home := tmp_path / "home").mkdir()
    house = asyncio.run(_furnished(sqlite_files, home))
    keys_at(home / "target.key")
    before = asyncio.run(look(house.url, house.owners))
    for when, number in STEPS:
        folder = tmp_path / f"{when}{number}"
        shutil.copytree(home, folder)
        here = replace(house, url=f"sqlite:///{folder}/test.db", keys=folder / "source.key")
        target, keys = f"sqlite:///{folder}/target.db", folder / "target.key"
        killed(here, target, keys, when, number)
        stands(here, target, when, number)
        run(here, target, keys)
        has_moved(here, target, before)
        asyncio.run(goes_on(here, target, keys))


async def _furnished(files: SqliteFiles, home: Path) -> House:
    return await furnish(await files.fresh(home), home / "source.key")
