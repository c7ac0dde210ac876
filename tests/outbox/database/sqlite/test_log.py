"""The log of SQLite is written back when nobody waits for it any more, and does not grow."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from outbox.database.sqlite import writer
from outbox.database.sqlite.file import LOG_BYTES
from outbox.database.sqlite.unit_thread import Job
from outbox.database.sqlite.writer import Writer
from outbox.database.transaction import Database
from tests.outbox.database.sqlite.units import long_note

LARGE = 100_000
"""Bytes of a note."""
PER_LOG = LOG_BYTES // LARGE + 1
"""Notes of which a log is long."""


def log_of(tmp_path: Path) -> int:
    return (tmp_path / "one.db-wal").stat().st_size


async def fill(file: Database, times: int) -> None:
    for n in range(PER_LOG * times):
        await file.write(long_note, f"{times}.{n}", LARGE)


async def test_writes_are_answered_before_the_log_is_written_back(
    file: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, write_back = Writer.end, Writer.write_back
    ended, answered, seen = list[Job](), threading.Semaphore(0), list[bool]()

    def noted(of: Writer) -> list[Job]:
        done = end(of)
        ended.extend(done)
        return done

    def waits(of: Writer) -> None:
        seen.extend(answered.acquire(timeout=10) for _ in range(len(ended) - len(seen)))
        write_back(of)

    monkeypatch.setattr(Writer, "end", noted)
    monkeypatch.setattr(Writer, "write_back", waits)
    for n in range(PER_LOG + 1):
        await file.write(long_note, str(n), LARGE)
        answered.release()
    assert seen
    assert all(seen)


async def test_the_log_does_not_grow(
    file: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_back, done = Writer.write_back, list[Writer]()

    def counted(of: Writer) -> None:
        done.append(of)
        write_back(of)

    monkeypatch.setattr(Writer, "write_back", counted)
    for times in (1, 2, 3):
        await fill(file, times)
        assert log_of(tmp_path) < LOG_BYTES + 2 * LARGE
    # Once for each log, and not with each COMMIT after the first.
    assert 5 <= len(done) <= 7


async def test_while_flushes_are_slow_the_log_grows_to_its_bound(
    file: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SLOW_SECONDS", 0.0)
    monkeypatch.setattr(writer, "MOST_LOG_BYTES", 3 * LOG_BYTES)
    await fill(file, 2)
    assert log_of(tmp_path) > 2 * LOG_BYTES
    await fill(file, 4)
    assert log_of(tmp_path) < 3 * LOG_BYTES + 2 * LARGE
