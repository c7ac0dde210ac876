"""Writes the report of an import as CSV: its faults, and its faulty lines as a file to send again.

A line that was imported without some of its cells begins with the id of its record, so that the
mended line updates this record.
"""

import csv
from collections.abc import AsyncGenerator, Callable, Sequence
from io import StringIO

from gateway.domain import import_lines
from gateway.domain.imports import import_jobs
from gateway.domain.imports.columns import ID
from gateway.domain.imports.import_jobs import Import, LineFault
from gateway.records.audit import Actor
from gateway.records.values import csv_cells
from outbox.database.transaction import Database, Tx

OWN_ID = "carteiro id"
"""The heading of the ids of records in a file of faulty lines; no other program has it."""
HEADINGS = ("line", "column", "value", "reason", "result")
REFUSED, WITHOUT = "refused", "imported without it"
AT_ONCE = 500
BOM = "\ufeff"


def with_own_id(headings: Sequence[str], fields: Sequence[str]) -> list[str]:
    """Return the fields of columns; a column with ids of our records finds these records."""
    own = next((place for place, one in enumerate(headings) if one.casefold() == OWN_ID), None)
    if own is None:
        return list(fields)
    return [
        ID if place == own else "" if field == ID else field for place, field in enumerate(fields)
    ]


async def faults(
    db: Database,
    job: Import,
    *,
    headings: Sequence[str] = HEADINGS,
    say: Callable[[LineFault], tuple[str, str]] = lambda fault: (
        fault.error,
        WITHOUT if fault.warning else REFUSED,
    ),
    separator: str = ",",
    bom: bool = False,
) -> AsyncGenerator[bytes, None]:
    """Yield the faults that are kept as CSV; `say` returns the reason and the result of one."""
    yield _text([headings], separator, bom=bom)
    done = 0
    while some := await db.read(import_jobs.faults, job.id, done, AT_ONCE):
        done += len(some)
        rows = [
            (
                str(fault.line),
                csv_cells.inert(fault.heading),
                _cell(fault.value),
                *map(csv_cells.inert, say(fault)),
            )
            for fault in some
        ]
        yield _text(rows, separator)


async def lines(db: Database, job: Import, *, bom: bool = False) -> AsyncGenerator[bytes, None]:
    """Yield the faulty lines that are kept, under the heading of their file."""
    # Cards have no separator; their lines are a table.
    separator = job.separator or ","
    place = job.fields.index(ID) if ID in job.fields else None
    with_ids = await db.read(_has_ids, job.id)
    heading = [OWN_ID] * (with_ids and place is None) + [
        csv_cells.inert(cell) for cell in job.headings
    ]
    yield _text([heading], separator, bom=bom)
    last = 0
    while some := await db.read(import_lines.faulty_after, job.id, last, AT_ONCE):
        last = some[-1].line
        rows = []
        for _, record_id, sent in some:
            row = [_cell(cell) for cell in sent]
            if with_ids and place is None:
                row.insert(0, record_id or "")
            elif record_id is not None and place is not None:
                # A sheet leaves out the empty cells at the end of a line.
                row += [""] * (place + 1 - len(row))
                row[place] = record_id
            rows.append(row)
        yield _text(rows, separator)


async def of(tx: Tx, actor: Actor, import_id: str) -> Import:
    """Return the import of a report. Raises not_found, forbidden."""
    actor.must("read")
    return await import_jobs.own(tx, actor, import_id)


async def _has_ids(tx: Tx, import_id: str) -> bool:
    row = await tx.one(
        """select line from import_faulty_lines where import_id = $1 and record_id is not null
        limit 1""",
        import_id,
    )
    return row is not None


def _cell(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula, and that is read as before."""
    return csv_cells.inert(csv_cells.plain(cell)) if cell else ""


def _text(rows: Sequence[Sequence[str]], separator: str, *, bom: bool = False) -> bytes:
    out = StringIO(BOM if bom else "")
    out.seek(0, 2)
    csv.writer(out, delimiter=separator, lineterminator="\r\n").writerows(rows)
    return out.getvalue().encode(errors="replace")
