"""SQLite: brief units run on the event loop, all others and each COMMIT on a thread."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.sqlite.writer import LONG_SECONDS
from outbox.database.transaction import Database, Tx, brief
from outbox.errors import DatabaseUnavailable
from outbox.ids import Ids
from tests.outbox.database.sqlite.units import LOOP, THREAD, long_note, note, noted, slow
from tests.support.clocks import Stopped


async def test_a_unit_that_takes_long_runs_again_on_the_thread(
    file: Database, clock: Stopped
) -> None:
    ran: list[str] = []

    @brief
    async def write(tx: Tx, name: str, statements: int) -> str:
        ran.append(threading.current_thread().name)
        for n in range(statements):
            clock.now += LONG_SECONDS / 2
            await long_note(tx, f"{name}-{n}")
        return ran[-1]

    where = await asyncio.gather(
        file.write(note, "a"), file.write(write, "b", 4), file.write(note, "c")
    )
    assert ran == [LOOP, THREAD]
    assert [*where[1:]] == [THREAD, THREAD]
    assert await file.read(noted) == ["a", "b-0", "b-1", "b-2", "b-3", "c"]


async def test_a_unit_that_only_reads_for_long_succeeds_too(file: Database, clock: Stopped) -> None:
    assert await file.write(slow(clock, LONG_SECONDS)) == THREAD


async def test_closing_finishes_what_was_accepted(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/two.db"
    db = await database.open(url, clock=SystemClock(), ids=Ids(), serving=True)

    async def table(tx: Tx) -> None:
        await tx.run("create table notes (n integer primary key, name text, text blob)")

    await db.write(table)
    writes = [
        asyncio.ensure_future(db.write(long_note if n % 5 == 2 else note, f"n{n}"))
        for n in range(600)
    ]
    await asyncio.sleep(0)
    await db.close()
    assert set(await asyncio.gather(*writes)) <= {LOOP, THREAD}
    with pytest.raises(DatabaseUnavailable):
        await db.write(note, "late")
    assert [thread for thread in threading.enumerate() if thread.name == THREAD] == []
    db = await database.open(url, clock=SystemClock(), ids=Ids(), serving=True)
    assert await db.read(noted) == [f"n{n}" for n in range(600)]
    await db.close()
