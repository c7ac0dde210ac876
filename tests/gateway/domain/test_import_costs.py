"""What an import costs others: characters of a transaction, and work on the event loop."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from gateway.domain import import_lines
from gateway.domain.imports import files, import_jobs, import_steps
from gateway.domain.imports.importing import Importing
from gateway.domain.imports.line_reading import read_line
from gateway.domain.imports.source_files import Source
from outbox.database.transaction import Database, Tx
from tests.gateway.rest.test_imports import upload
from tests.support.rest import Person, RestApi

LONG, LINES = 30_000, 10
FILE = "name,notes,companyId\n" + "".join(
    f"n{n},{'x' * LONG},{'0' * 24 if n % 3 == 2 else ''}\n" for n in range(LINES)
)
"""Every third line is refused only by the database."""


class Watched:
    """A database that knows how many characters of waiting lines each transaction took."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.writing = False
        self.taken: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    async def write(self, unit: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        before = await self._db.read(waiting)
        self.writing = True
        try:
            return await self._db.write(unit, *args)
        finally:
            self.writing = False
            self.taken.append(before - await self._db.read(waiting))


async def waiting(tx: Tx) -> int:
    """The characters of all lines that wait."""
    row = await tx.one("select coalesce(sum(length(cells)), 0) as n from import_lines")
    return 0 if row is None else int(row["n"])


@pytest.mark.parametrize("bound", [import_steps.CHARACTERS, 10**9], ids=["bound", "without"])
async def test_a_step_takes_so_many_characters_and_parses_each_line_once_before_it(
    api: RestApi, ana: Person, bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await upload(ana, "contacts", FILE, "?mode=strict")).status == 202
    db = Watched(api.db)
    loop, parsed = threading.get_ident(), []

    def parse(resource: Any, filling: Any, line: Any, written: Any) -> Any:
        assert not db.writing
        assert threading.get_ident() != loop
        parsed.append(line[0])
        return read_line(resource, filling, line, written)

    monkeypatch.setattr("gateway.domain.imports.import_steps.read_line", parse)
    monkeypatch.setattr(import_steps, "CHARACTERS", bound)
    await Importing(db).run_once()  # type: ignore[arg-type] # it reads and writes like one
    assert parsed == [*range(2, LINES + 2)]
    assert sum(db.taken) > LINES * LONG
    assert (max(db.taken) <= 65_536) is (bound < 10**9)
    [job] = (await ana.get("/api/imports")).body["data"]
    assert (job["created"], job["faulty"]) == (7, 3)


async def test_no_more_is_read_than_twice_what_is_taken_but_one_line_however_long(
    api: RestApi, ana: Person
) -> None:
    await upload(ana, "contacts", FILE)
    [job] = (await ana.get("/api/imports")).body["data"]
    asked: list[int] = []

    @dataclass
    class Counting:
        tx: Tx

        async def all(self, sql: str, *args: Any) -> Any:
            rows = await self.tx.all(sql, *args)
            asked.append(len(rows))
            return rows

    async def unit(tx: Tx, characters: int) -> list[int]:
        counting: Any = Counting(tx)
        return [n for n, _ in await import_lines.after(counting, job["id"], 0, 50, characters)]

    for characters, numbers in (
        (1, [2]), (LONG * 3 + 200, [2, 3, 4]), (10**9, [*range(2, LINES + 2)]),
    ):  # fmt: skip
        asked.clear()
        assert await api.db.read(unit, characters) == numbers
        assert sum(asked) <= 2 * len(numbers)


@pytest.mark.parametrize("bound", [LONG * 2 + 200, 10**9], ids=["bound", "without"])
async def test_the_lines_of_an_ended_import_go_by_characters(
    api: RestApi, ana: Person, bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await upload(ana, "contacts", FILE)
    [job] = (await ana.get("/api/imports")).body["data"]
    monkeypatch.setattr(import_jobs, "DROPPED_CHARACTERS", bound)

    async def end(tx: Tx) -> None:
        await import_jobs.fail(tx, job["id"], "x")

    await api.db.write(end)
    db = Watched(api.db)
    await import_jobs.clear(db, job["id"])  # type: ignore[arg-type] # it reads and writes like one
    assert (max(db.taken) <= LONG * 2 + 200) is (bound < 10**9)
    assert await api.db.read(waiting) == 0


async def test_a_file_is_parsed_beside_the_event_loop(
    api: RestApi, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, threads = threading.get_ident(), set()
    feed = Source.feed

    def watched(source: Source, data: bytes) -> Any:
        threads.add(threading.get_ident())
        return feed(source, data)

    monkeypatch.setattr(Source, "feed", watched)
    assert (await upload(ana, "contacts", FILE)).status == 202
    assert threads
    assert loop not in threads


def test_the_first_line_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    search = files.separator_of

    def judged(text: str, *, last: bool) -> str:
        sizes.append(len(text))
        return search(text, last=last)

    monkeypatch.setattr(files, "separator_of", judged)
    monkeypatch.setattr(files, "SAMPLE", 1_000)
    file = files.CsvFile()
    for _ in range(3_000):
        file.feed(b"x")
    assert sizes == [1_000]
