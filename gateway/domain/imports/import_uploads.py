"""Receives a file in pieces, into rows of the database: it is never whole in memory."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from gateway.domain.catalogue import Entry
from gateway.domain.import_lines import Line
from gateway.domain.imports import import_jobs
from gateway.domain.imports.column_reach import ColumnReach
from gateway.domain.imports.columns import fields_of
from gateway.domain.imports.import_jobs import Import
from gateway.domain.imports.import_options import DEFAULT, Options
from gateway.domain.imports.import_reports import with_own_id
from gateway.domain.imports.source_files import Source
from gateway.domain.imports.written_forms import Shown
from gateway.records import audit
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.resource import Resource
from gateway.records.values.folding import clean
from outbox.database.transaction import Database, Tx, patience
from outbox.errors import DatabaseUnavailable

Named = Mapping[str, str] | None
"""Heading → target of the columns; None lets the headings decide."""
R = TypeVar("R")
LINES_AT_ONCE = 500
CHARACTERS_AT_ONCE = 262_144
ALL = "all"
"""In place of a field, of a column that is not chosen yet."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What a client wants of an import; with `complete` nothing of it can follow the file."""

    named: Named = None
    options: Options = DEFAULT
    dry_run: bool = False
    complete: bool = True


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file, its encoding if the client names one, and the choices, complete after the file."""

    pieces: AsyncIterator[bytes]
    choices: Callable[[], Choices]
    charset: str = ""


async def receive(
    db: Database,
    actor: Actor,
    entry: Entry,
    sent: SentFile,
    *,
    end: Callable[[Callable[[Tx], Awaitable[Import]]], Awaitable[R]],
    held: bool = False,
) -> R:
    """Store the lines of a file and let its import run; return what `end` makes of it.

    With `held` it waits until a person has chosen the columns. `end` writes the last unit:
    `db.write`, or once for a key. Nothing is left of a file that is refused, or whose unit `end`
    did not run. Raises forbidden, conflict, validation_error, and the errors of `end`.
    """
    import_id = await db.write(import_jobs.begin, actor, entry.resource.plural)
    runs = False
    try:
        source = Source(entry.resource, sent.charset)
        shown, reach = Shown(), ColumnReach(actor, source)
        keep = _keeps(source, entry.resource, sent.choices, held, reach)
        store = _Store(db, import_id, keep, shown)
        async for piece in sent.pieces:
            await store.take(partial(source.feed, piece))
        await store.take(source.end, last=True)
        file = source.file
        last = sent.choices()
        fields = [""] * len(file.headings) if held else _fields(source, entry.resource, last.named)
        reach.must_do(fields)
        _be_patient()

        upload = import_jobs.Upload(
            headings=file.headings,
            fields=fields,
            encoding=file.encoding,
            separator=file.separator,
            shown=shown.bits,
            lines=source.lines,
            options=last.options,
            dry_run=last.dry_run,
            held=held,
        )

        async def complete(tx: Tx) -> Import:
            nonlocal runs
            runs = True
            await import_jobs.complete(tx, import_id, upload)
            if not (last.dry_run or held):
                audit.record(tx, actor, "imported", "import", import_id)
            return await import_jobs.own(tx, actor, import_id)

        result = await end(complete)
        if not runs:
            await import_jobs.discard(db, import_id)
    except Refusal:
        _be_patient()
        await import_jobs.discard(db, import_id)
        # A browser reads the response only after it has sent the whole file.
        async for _ in sent.pieces:
            pass
        raise
    except BaseException:
        # Also when the client has gone; an unavailable database leaves it to the duty.
        with suppress(DatabaseUnavailable):
            await asyncio.shield(import_jobs.discard(db, import_id))
        raise
    return result


def _fields(source: Source, resource: Resource, named: Named) -> Sequence[str]:
    headings = source.file.headings
    return with_own_id(headings, fields_of(resource, headings, named))


def _keeps(
    source: Source,
    resource: Resource,
    choices: Callable[[], Choices],
    held: bool,
    reach: ColumnReach,
) -> Callable[[Sequence[str]], list[str]]:
    """Return a function that blanks the cells of columns that are left out.

    A line with more cells than the heading stays as it is: nobody knows which of them are extra.
    """
    early = choices()
    fields: Sequence[str] = []

    def keep(cells: Sequence[str]) -> list[str]:
        nonlocal fields
        width = len(source.file.headings)
        if held or not early.complete:
            fields = [ALL] * width
        # Refused at the first line, not after all.
        fields = fields or _fields(source, resource, early.named)
        reach.see(cells)
        reach.must_do(fields)
        if any(map(clean, cells[width:])):
            return list(cells)
        return [cell if field else "" for cell, field in zip(cells, fields, strict=False)]

    return keep


def _be_patient() -> None:
    """Begin the patience of the request again: an upload may last longer than its transactions."""
    current = patience.get()
    if current is not None:
        current.waited = 0.0


class _Store:
    """Gathers lines and stores some at once. It reads on a thread: the loop must not wait."""

    def __init__(
        self,
        db: Database,
        import_id: str,
        keep: Callable[[Sequence[str]], list[str]],
        shown: Shown,
    ) -> None:
        self._db = db
        self._import_id = import_id
        self._keep = keep
        self._shown = shown
        self._lines: list[Line] = []
        self._size = 0

    async def take(self, read: Callable[[], Sequence[Line]], *, last: bool = False) -> None:
        """Store what is read; the rest of it with more, or with the last."""
        for lines in await asyncio.to_thread(self._gather, read, last):
            _be_patient()
            await self._db.write(import_jobs.receive, self._import_id, lines)

    def _gather(self, read: Callable[[], Sequence[Line]], last: bool) -> Sequence[Sequence[Line]]:
        """Return the lines that are to be stored, by the transactions that store them."""
        full: list[Sequence[Line]] = []
        for number, cells in read():
            row = self._keep(cells)
            self._shown.see(row)
            self._lines.append((number, row))
            self._size += sum(map(len, row)) + 16
            if len(self._lines) >= LINES_AT_ONCE or self._size >= CHARACTERS_AT_ONCE:
                full.append(self._lines)
                self._lines, self._size = [], 0
        if last and self._lines:
            full.append(self._lines)
            self._lines = []
        return full
