"""One node leads, and loses the leadership when it is silent, disconnected or frozen."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.leadership import Leadership, Pace
from outbox.database.transaction import Database
from outbox.durations import SECOND
from outbox.ids import Ids
from tests.support.waiting import until

POSTGRES = pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
QUICK = Pace(beat=0.2, silence=0.8)
ROOT = Path(__file__).parents[3]


@asynccontextmanager
async def candidates(url: str, count: int, pace: Pace = QUICK) -> AsyncIterator[list[Leadership]]:
    """Start `count` candidates, each with its own database handle."""
    handles: list[Database] = []
    standing: list[Leadership] = []
    try:
        for _ in range(count):
            handles.append(await database.open(url, clock=SystemClock(), ids=Ids()))
            standing.append(handles[-1].leadership(pace))
            standing[-1].start()
        yield standing
    finally:
        for leadership in standing:
            await leadership.stop()
        for db in handles:
            await db.close()


def leaders(standing: list[Leadership]) -> list[int]:
    return [number for number, leadership in enumerate(standing) if leadership.leads]


async def the_one(standing: list[Leadership], but: int = -1) -> int:
    """Wait for a leader other than `but`; assert that there is never a second one."""
    await until(lambda: any(n != but for n in leaders(standing)))
    [found] = [n for n in leaders(standing) if n != but]
    return found


async def end_session(url: str) -> None:
    """End the session that has the lock, from the server."""
    connection = await asyncpg.connect(url)
    ended = await connection.fetchval(
        "select count(pg_terminate_backend(pid)) from pg_locks where locktype = 'advisory'"
        " and objid = 7201966 and granted"
        " and database = (select oid from pg_database where datname = current_database())"
    )
    await connection.close()
    assert ended == 1


@pytest.mark.slow
@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_the_one_server_of_a_file_leads(db: Database) -> None:
    leadership = db.leadership()
    assert leadership.leads
    assert leadership.settled


@POSTGRES
async def test_one_of_four_leads_and_the_others_follow_it(db_url: str) -> None:
    async with candidates(db_url, 4) as standing:
        first = await the_one(standing)
        await standing[first].stop()
        assert not standing[first].leads
        second = await the_one(standing)
        assert second != first


@POSTGRES
async def test_a_leader_whose_session_ended_notices_at_once(db_url: str) -> None:
    async with candidates(db_url, 4, Pace(beat=30, silence=90)) as standing:
        first = await the_one(standing)
        lost = asyncio.Event()
        standing[first].on_loss(lost.set)
        await end_session(db_url)
        await lost.wait()
        # Another node may lead by now: one that had not requested the lock before it was free.
        assert first not in leaders(standing)


@POSTGRES
async def test_another_node_replaces_a_leader_whose_session_ended(db_url: str) -> None:
    async with candidates(db_url, 4) as standing:
        first = await the_one(standing)
        lost = asyncio.Event()
        standing[first].on_loss(lost.set)
        await end_session(db_url)
        # Until it notices, another may lead beside it: `settled` waits for that.
        await lost.wait()
        await the_one(standing)


class Stopped(SystemClock):
    """A boot clock that only a test advances, as after a suspension."""

    now = 1_000_000_000

    def boot(self) -> int:
        return self.now


@POSTGRES
async def test_a_leader_is_settled_after_a_beat_and_leads_no_longer_than_its_silence(
    db_url: str,
) -> None:
    clock = Stopped()
    db = await database.open(db_url, clock=clock, ids=Ids())
    leadership = db.leadership(Pace(beat=300, silence=900))
    leadership.start()
    await until(lambda: leadership.leads)
    standing = []
    for seconds in (0, 300, 600):
        clock.now += seconds * SECOND
        standing.append((leadership.leads, leadership.settled))
    assert standing == [(True, False), (True, True), (False, False)]
    await leadership.stop()
    await db.close()


LEAD = """
import asyncio, sys
from outbox import database
from outbox.clock import SystemClock
from outbox.durations import SECOND
from outbox.ids import Ids
from outbox.database.leadership import Pace

async def main():
    db = await database.open(sys.argv[1], clock=SystemClock(), ids=Ids())
    leadership = db.leadership(Pace(float(sys.argv[2]), float(sys.argv[3])))
    leadership.start()
    led = False
    while True:
        if leadership.leads != led:
            led = leadership.leads
            print("leads" if led else "follows", flush=True)
        await asyncio.sleep(0.01)

asyncio.run(main())
"""


async def said(stream: asyncio.StreamReader, word: bytes) -> None:
    """Read until a line equals `word`; log lines come in between."""
    async for line in stream:
        if line.strip() == word:
            return
    raise AssertionError(f"it ended without {word!r}")


@POSTGRES
@pytest.mark.proof
async def test_the_place_of_a_frozen_leader_is_taken_within_35_seconds(db_url: str) -> None:
    """From SIGSTOP of the leading process to the next leader."""
    words = (sys.executable, "-c", LEAD, db_url, str(Pace().beat), str(Pace().silence))
    process = await asyncio.create_subprocess_exec(
        *words, stdout=subprocess.PIPE, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    assert process.stdout is not None
    try:
        await said(process.stdout, b"leads")
        async with candidates(db_url, 3, Pace()) as standing:
            await asyncio.sleep(0)
            assert leaders(standing) == []
            process.send_signal(signal.SIGSTOP)
            await until(lambda: bool(leaders(standing)), 35)
            process.send_signal(signal.SIGCONT)
            await said(process.stdout, b"follows")
            assert len(leaders(standing)) == 1
    finally:
        process.kill()
        await process.wait()
