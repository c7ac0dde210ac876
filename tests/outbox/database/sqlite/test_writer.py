"""SQLite: what fails, or waits for a lock, fails its own unit and no other."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from outbox.database.transaction import Database, Tx, brief
from outbox.errors import DatabaseUnavailable, OutcomeUnknown
from tests.outbox.database.sqlite.units import LOOP, THREAD, later, note, noted, watch


async def test_a_row_that_cannot_be_written_fails_its_own_unit(file: Database) -> None:
    results = await asyncio.gather(
        file.write(later, "a"),
        file.write(later, "b", None),
        file.write(note, "c"),
        return_exceptions=True,
    )
    assert isinstance(results[1], sqlite3.IntegrityError)
    assert not any(isinstance(results[n], Exception) for n in (0, 2))
    assert sorted(await file.read(noted)) == ["a", "c"]


async def test_results_of_a_transaction_that_sqlite_ended_are_computed_again(
    file: Database,
) -> None:
    @brief
    async def kill(tx: Tx) -> None:
        await tx.run("insert or rollback into notes (name, text) values ('x', null)")

    @brief
    async def seen(tx: Tx, name: str) -> bool:
        return await tx.one("select 1 from notes where name = $1", name) is not None

    results = await asyncio.gather(
        file.write(note, "a"), file.write(seen, "a"), file.write(kill), file.write(note, "b"),
        return_exceptions=True,
    )  # fmt: skip
    assert results[1] is True
    assert isinstance(results[2], sqlite3.IntegrityError)
    assert await file.read(noted) == ["a", "b"]


async def test_a_full_disk_fails_one_unit_and_no_other(file: Database) -> None:
    async def cap(tx: Tx) -> None:
        [pages] = await tx.all("pragma page_count")
        await tx.run(f"pragma max_page_count = {pages[0] + 20}")

    await file.write(cap)
    results = await asyncio.gather(
        file.write(note, "a"), file.write(note, "b", 1_000_000), file.write(note, "c"),
        return_exceptions=True,
    )  # fmt: skip
    assert isinstance(results[1], DatabaseUnavailable)
    assert results[1].kind == "full"
    assert await file.read(noted) == ["a", "c"]


async def test_a_disk_that_fails_at_commit_leaves_the_outcome_open(
    file: Database, tmp_path: Path
) -> None:
    """After a failed flush the log may hold the whole transaction, and the next start finds it."""
    await file.write(note, "a")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Only COMMIT writes to the log.
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "one.db-wal").stat().st_size, hard))
    try:
        with pytest.raises(OutcomeUnknown) as raised:
            await file.write(note, "b")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert raised.value.kinds == ("io", "outcome_unknown")
    await file.write(note, "c")
    assert {"a", "c"} <= set(await file.read(noted))


@pytest.mark.parametrize("kind", ["brief", "long"])
async def test_a_lost_connection_is_opened_again(file: Database, kind: str) -> None:
    async def lose(tx: Tx) -> None:
        tx._connection.close()  # type: ignore[attr-defined]

    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
    with pytest.raises(sqlite3.ProgrammingError):
        await file.write(brief(lose) if kind == "brief" else lose)
    assert faults == []
    # The thread opens it, then the loop uses it.
    assert await file.write(note, "a") == THREAD
    assert await file.write(note, "b") == LOOP


async def test_writes_that_wait_for_another_process_wait_at_the_same_time(
    file: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.database.sqlite.writer.BUSY_MILLISECONDS", 20)
    ran: list[str] = []
    await file.write(watch, ran.append)
    with closing(sqlite3.connect(tmp_path / "one.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        ran.clear()
        refused = await asyncio.gather(
            *(file.write(note, str(number)) for number in range(40)), return_exceptions=True
        )
        other.execute("rollback")
    assert {getattr(each, "kind", None) for each in refused} == {"busy"}
    # One try on the loop, and one wait for all of them on the thread.
    assert ran.count("begin immediate") == 2
    await file.write(note, "later")
    assert await file.read(noted) == ["later"]
