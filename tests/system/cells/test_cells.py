"""Three cells behind HAProxy: owners move between them while everybody writes and receives."""

from __future__ import annotations

import asyncio
import itertools
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import pytest

from outbox.database.migrate import migrate
from tests.support.cluster import Cluster
from tests.support.databases import SOURCES, PostgresServer
from tests.support.movers import opened
from tests.support.waiting import until
from tests.system.cells.town import CELLS, Owner, Span, Town, took, town

DYING = "tests.gateway.cli.moving.dying_move"
STEPS = [
    ("before", "stand.1"), ("after", "stand.1"), ("before", "stand.2"), ("after", "stand.2"),
    ("after", "_clear.1"), ("before", "_apply.1"), ("after", "_apply.1"), ("before", "_rest.1"),
    ("after", "_rest.1"), ("before", "_leave.1"), ("after", "_leave.1"), ("before", "_open.1"),
    ("after", "_open.1"), ("before", "stand.3"), ("after", "stand.3"),
    ("before", "forget_changes.1"),
]  # fmt: skip
"""Where the command is killed."""
PARTIES = ("command", "source", "target", "proxy", "source database", "target database")
"""What is killed with it."""
MOVES = 24
"""Each step at least once, and each party four times."""
ROUNDS = 2
A_SPAN = 5
"""The contacts that each owner writes in a span of time."""


async def _fresh(server: PostgresServer) -> dict[str, str]:
    return {name: await server.fresh() for name in CELLS}


async def test_a_key_works_before_during_and_after_a_move(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    urls, directory = await _fresh(postgres_server), await postgres_server.empty()
    async with town(tmp_path, urls, directory, owners=1, pause=0.1) as cells:
        mover = cells.owners[0]
        assert await mover.status() == (200, "", "")
        await until(lambda: len(mover.made) >= 3, 60)
        dead, said = await cells.move(mover, "two", (DYING, "after", "_rest.1"))
        assert dead == -9, said
        # He may read what there is, and others notice nothing.
        count = len(mover.made)
        assert mover.refused[503] or await _until_refused(mover)
        others = [len(one.made) for one in cells.owners[1:]]
        await until(
            lambda: all(len(o.made) > n for o, n in zip(cells.owners[1:], others, strict=True)),
            60,
        )
        assert len(mover.made) <= count + 1
        status, said = await cells.command("one", "move", mover.email, "--to", "two")
        assert status == 0, said
        mover.cell = "two"
        # The proxy does not know it yet.
        assert await mover.status() == (421, "two", "misdirected")
        await cells.push()
        assert await mover.status() == (200, "", "")
        count = len(mover.made)
        await until(lambda: len(mover.made) >= count + 3, 60)
        assert not any(one.refused for one in cells.owners[1:])
    for url in (*urls.values(), directory):
        await postgres_server.drop(url)


async def _until_refused(owner: Owner) -> bool:
    await until(lambda: bool(owner.refused[503]), 60)
    return True


@asynccontextmanager
async def clusters() -> AsyncIterator[dict[str, Cluster]]:
    """Three servers of PostgreSQL with the schema, and one for the directory."""
    # Its user may not enter the folder of the test.
    folder = Path(tempfile.mkdtemp(prefix="carteiro-cells-"))
    folder.chmod(0o755)
    made = {name: Cluster(folder / name) for name in (*CELLS, "directory")}
    try:
        for name, cluster in made.items():
            await cluster.create()
            await cluster.start()
            if name in CELLS:
                db = await opened(cluster.url)
                await migrate(db, SOURCES)
                await db.close()
        yield made
    finally:
        for cluster in made.values():
            await cluster.close()
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def busy(folder: Path, pause: float) -> AsyncIterator[tuple[Town, dict[str, Cluster]]]:
    """Serve three cells with 60 owners, each on a server of its own that can be killed."""
    async with clusters() as servers:
        urls = {name: servers[name].url for name in CELLS}
        async with town(folder, urls, servers["directory"].url, owners=20, pause=pause) as cells:
            yield cells, servers


async def _killed(
    cells: Town, servers: dict[str, Cluster], party: str, ends: tuple[str, str]
) -> None:
    """Kill a party with -9, and let it come back."""
    who, _, database = party.partition(" ")
    if who == "command":
        return
    if who == "proxy":
        cells.proxy.kill()
        cells.proxy.start()
        return
    name = ends[0] if who == "source" else ends[1]
    if database:
        await servers[name].kill()
        await servers[name].start()
    else:
        await cells.kill(name)
        await cells.start(name)


@pytest.mark.timeout(1_200)
async def test_moves_with_kills_lose_nothing(tmp_path: Path) -> None:
    """Owners move at random; the command is killed at each step, and something with it."""
    rng, repeated = random.Random(1), 0
    async with busy(tmp_path, pause=2.0) as (cells, servers):
        for number, (when, step) in zip(range(MOVES), itertools.cycle(STEPS), strict=False):
            party = PARTIES[number % len(PARTIES)]
            owner = rng.choice(cells.owners)
            ends = (owner.cell, rng.choice([name for name in CELLS if name != owner.cell]))
            status, said = await cells.move(owner, ends[1], (DYING, when, step))
            assert status == -9, (when, step, said)
            await _killed(cells, servers, party, ends)
            for _ in range(20):
                status, said = await cells.move(owner, ends[1])
                if status == 0:
                    break
                repeated += 1
                await asyncio.sleep(1)
            assert status == 0, (when, step, party, said)
        refused = dict(sum((one.refused for one in cells.owners), Counter[int]()))
        print("repeated:", repeated, "refused:", refused)


@pytest.mark.timeout(1_200)
async def test_others_see_nothing_of_moves_and_of_a_cell_that_is_down(tmp_path: Path) -> None:
    async with busy(tmp_path, pause=4.0) as (cells, servers):
        await _written(cells.owners, 5)
        await _beside_moves(cells)
        await _one_down(cells, servers)


async def _beside_moves(cells: Town) -> None:
    """Move a few owners again and again, and compare the others with the times between."""
    moving, others = cells.owners[::10], [one for at, one in enumerate(cells.owners) if at % 10]
    before = sum((one.refused for one in others), Counter[int]())
    quiet, beside, moves = [], [], 0
    for _ in range(ROUNDS):
        quiet.append(await _span(others))
        ends = asyncio.create_task(_span(others))
        while not ends.done():
            owner = moving[moves % len(moving)]
            status, said = await cells.move(owner, _next(owner.cell))
            assert status == 0, said
            moves += 1
        beside.append(await ends)
    refused = sum((one.refused for one in others), Counter[int]()) - before
    _told(f"{moves} moves", others, quiet, beside)
    assert not refused


def _next(cell: str) -> str:
    return CELLS[(CELLS.index(cell) + 1) % len(CELLS)]


async def _span(owners: Sequence[Owner]) -> tuple[float, float]:
    """Wait until each owner has written a few contacts; return when that began and ended."""
    began = monotonic()
    await _written(owners, A_SPAN)
    return began, monotonic()


def _told(
    what: str, owners: Sequence[Owner], quiet: Sequence[Span], beside: Sequence[Span]
) -> None:
    """Print the median and the p99 of the writes in two kinds of spans."""
    for name, share in (("median", 0.5), ("p99", 0.99)):
        one, other = (took(owners, spans, share) * 1000 for spans in (quiet, beside))
        print(f"{what}: {name} {one:.1f} ms before, {other:.1f} meanwhile, times {other / one:.2f}")


async def _written(owners: Sequence[Owner], count: int) -> None:
    """Wait until each owner has made so many contacts more."""
    wanted = {one.id: len(one.made) + count for one in owners}
    await until(lambda: all(len(one.made) >= wanted[one.id] for one in owners), 300)


async def _one_down(cells: Town, servers: dict[str, Cluster]) -> None:
    """Kill a whole cell again and again; owners of the others see nothing of it."""
    others = [one for one in cells.owners if one.cell != "three"]
    before = sum((one.refused for one in others), Counter[int]())
    quiet, beside = [], []
    for _ in range(ROUNDS):
        quiet.append(await _span(others))
        await cells.kill("three")
        await servers["three"].kill()
        beside.append(await _span(others))
        await servers["three"].start()
        await cells.start("three")
        await _written(cells.owners, 1)
    refused = sum((one.refused for one in others), Counter[int]()) - before
    _told("a cell is down", others, quiet, beside)
    assert not refused
    for one in others:
        for began, ended in beside:
            assert any(began <= at < ended for at, _ in one.took)
