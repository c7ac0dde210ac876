"""Another program holds the write lock: each write is answered in time, and none waits twice."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from outbox.database.sqlite import writer
from outbox.database.sqlite.unit_thread import Job
from outbox.database.transaction import Database, Tx, brief
from outbox.errors import DatabaseUnavailable
from tests.outbox.database.sqlite.units import later, long_note, note, noted, watch

APART_SECONDS = 0.02


@pytest.mark.proof
async def test_a_lock_of_27_seconds_delays_no_answer_past_six(
    file: Database, tmp_path: Path
) -> None:
    """The writes of the time before the lock's end are made, and all others are refused."""
    seconds, most = 27.0, 6.0
    loop = asyncio.get_running_loop()
    times: list[float] = []
    refused: dict[str, str] = {}
    units = (note, later, long_note)

    async def one(number: int) -> None:
        began = loop.time()
        try:
            await file.write(units[number % 3], str(number))
        except DatabaseUnavailable as error:
            refused[str(number)] = error.kind
        times.append(loop.time() - began)

    with closing(sqlite3.connect(tmp_path / "one.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        end = loop.time() + seconds
        writes: list[asyncio.Task[None]] = []
        while loop.time() < end:
            writes.append(asyncio.create_task(one(len(writes))))
            await asyncio.sleep(APART_SECONDS)
        other.execute("rollback")
        await asyncio.gather(*writes)
    there = set(await file.read(noted))
    print(json.dumps({
        "held_s": seconds, "writes": len(writes), "refused": len(refused),
        "slowest_s": round(max(times), 2), "late": sum(each > most for each in times),
    }))  # fmt: skip
    assert max(times) <= most
    assert set(refused.values()) == {"busy"}
    assert there == {str(number) for number in range(len(writes))} - set(refused)


async def test_units_that_run_alone_do_not_wait_one_after_the_other(
    file: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite has ended their transaction, and another program comes between."""
    monkeypatch.setattr(writer, "BUSY_MILLISECONDS", 20)
    ran: list[str] = []
    await file.write(watch, ran.append)
    path = tmp_path / "one.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:

        @brief
        async def end_it(tx: Tx) -> None:
            await tx.run("insert or rollback into notes (name, text) values ('x', null)")

        real = writer.Writer._each_alone

        def each_alone(self: writer.Writer, jobs: list[Job]) -> None:
            other.execute("begin immediate")
            real(self, jobs)

        monkeypatch.setattr(writer.Writer, "_each_alone", each_alone)
        ran.clear()
        answers = await asyncio.gather(
            *(file.write(note, str(number)) for number in range(20)), file.write(end_it),
            return_exceptions=True,
        )  # fmt: skip
        other.execute("rollback")
    *refused, ended = answers
    assert {getattr(each, "kind", None) for each in refused} == {"busy"}
    assert isinstance(ended, sqlite3.IntegrityError)
    # The one of their batch, and the first that ran alone.
    assert ran.count("begin immediate") == 2
