"""Stores imports: begin, receive lines, start, cancel, end, read, delete.

An import is uploading, then running (or waiting, for a person who looks at it first), then done,
failed or cancelled. Its lines go with its end.

It is one module because every statement on the row of an import is here.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import json

from gateway.domain import import_lines
from gateway.domain.accounts import users
from gateway.domain.import_lines import Line
from gateway.domain.imports.columns import heading_of
from gateway.domain.imports.import_options import DEFAULT, Options
from gateway.records import audit
from gateway.records.audit import Actor, must_own
from gateway.records.errors import Fault, Refusal
from outbox.database.transaction import Database, Row, Tx
from outbox.ids import is_id

MOST_OPEN = 3
"""Imports of an owner that have not ended."""
LISTED = 100
WITH_LINES = 10
"""The latest imports of an owner that keep their faulty lines, which are personal data."""
MOST_FAULTS = 10_000
"""Faults of an import that are kept; all are counted."""
SHOWN_FAULTS = 1_000
"""Faults that are shown with an import; its report has all that are kept."""
MOST_VALUE = 100
"""Characters of a cell that its fault keeps."""
DROPPED_AT_ONCE = 1_000
"""Lines, or keys, of an import that has ended that a transaction deletes."""
DROPPED_CHARACTERS = 1_048_576
"""Characters of these lines; a line that has more goes alone."""
OPEN = "('uploading', 'waiting', 'running')"
_DROP_KEYS = """
delete from import_keys where import_id = $1 and digest in (
  select digest from import_keys where import_id = $1 limit $2)
"""
TRIED = "imports"
"""What Tx.changed says of a dry run, for which somebody waits, so that the runner looks at once."""


@dataclass(frozen=True, slots=True)
class Import:
    """An import. `line_count` lines, of which `done` were looked at, the last one in `place`."""

    id: str
    owner_id: str
    plural: str
    state: str
    dry_run: bool
    held: bool
    headings: Sequence[str]
    fields: Sequence[str]
    encoding: str
    line_count: int
    place: int
    done: int
    created: int
    updated: int
    unchanged: int
    faulty: int
    reason: str | None
    created_at: int
    finished_at: int | None
    separator: str
    options: Options
    shown: Sequence[int]
    """What the cells of each column show of how the file writes: see imports.forms."""
    run: int
    """How often it was started."""
    warnings: int
    """Cells that were left out of lines that were imported."""
    kept_lines: int
    """Faulty lines that are kept, with `kept_characters` in all."""
    kept_characters: int

    @property
    def is_open(self) -> bool:
        return self.state in ("uploading", "waiting", "running")


@dataclass(frozen=True, slots=True)
class LineFault:
    """A fault of a line: its number in the file, the heading of the column, the error with a fix.

    The error holds no value of the file.
    """

    line: int
    heading: str
    error: str
    field: str = ""
    code: str = ""
    """Empty in a fault that is of no field, or from a version that stored the error alone."""
    value: str = ""
    """The beginning of the cell, if the line is kept."""
    warning: bool = False
    """Whether the line was imported without the cell."""
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The parameters of the error, for its sentence in other languages."""

    @property
    def fault(self) -> Fault:
        """The fault as an error of its field; without a code, the error is all that is known."""
        text = self.error.removeprefix(f"{self.field}: ")
        if self.values:
            # They stand in the text already.
            text = text.replace("{", "{{").replace("}", "}}")
        return Fault(self.field, self.code, text, self.values)


async def begin(tx: Tx, actor: Actor, plural: str) -> str:
    """Begin an upload; return the id. Raises forbidden, conflict."""
    actor.must("write")
    # Two uploads at once see each other.
    await users.lock(tx, actor.owner_id)
    row = await tx.one(
        f"select count(*) as n from imports where owner_id = $1 and state in {OPEN}",
        actor.owner_id,
    )
    if row is not None and row["n"] >= MOST_OPEN:
        raise Refusal(
            "conflict", f"{MOST_OPEN} imports have not ended; wait until one ends, or cancel one."
        )
    await import_lines.forget_older(tx, actor.owner_id, WITH_LINES)
    import_id = tx.new_id()
    await tx.run(
        """insert into imports (id, owner_id, plural, state, dry_run, held, headings, fields,
          encoding, created_at, paced_at)
        values ($1, $2, $3, 'uploading', $4, $4, '[]', '[]', '', $5, $5)""",
        import_id, actor.owner_id, plural, False, tx.now,
    )  # fmt: skip
    return import_id


async def receive(tx: Tx, import_id: str, lines: Sequence[Line]) -> None:
    """Store lines of an upload. Raises conflict when it was cancelled meanwhile."""
    going = await tx.run(
        "update imports set paced_at = $2 where id = $1 and state = 'uploading'", import_id, tx.now
    )
    if not going:
        raise Refusal("conflict", "The import was cancelled.")
    await import_lines.add(tx, import_id, lines)


@dataclass(frozen=True, slots=True)
class Upload:
    """What is stored of a file whose lines are all received, and how its import runs."""

    headings: Sequence[str]
    fields: Sequence[str]
    encoding: str
    separator: str
    shown: Sequence[int]
    lines: int
    options: Options
    dry_run: bool
    held: bool


async def complete(tx: Tx, import_id: str, upload: Upload) -> None:
    """End an upload: the import runs, or waits when it is `held`. Raises conflict."""
    going = await tx.run(
        """update imports set state = $2, headings = $3, fields = $4, encoding = $5,
          line_count = $6, dry_run = $7, held = $8, paced_at = $9, separator = $10, shown = $11,
          options = $12
        where id = $1 and state = 'uploading'""",
        import_id, "waiting" if upload.held else "running", json.encode(upload.headings).decode(),
        json.encode(upload.fields).decode(), upload.encoding, upload.lines, upload.dry_run,
        upload.held, tx.now, upload.separator, json.encode(upload.shown).decode(),
        json.encode(upload.options).decode(),
    )  # fmt: skip
    if not going:
        raise Refusal("conflict", "The import was cancelled.")
    if upload.dry_run and not upload.held:
        tx.changed.add(TRIED)


async def discard(db: Database, import_id: str) -> None:
    """Delete an upload with its lines, unless it is complete."""
    if await db.write(_end, import_id, "cancelled", None, "('uploading')"):
        await clear(db, import_id)
        await db.write(_forget, import_id)


async def _forget(tx: Tx, import_id: str) -> None:
    await tx.run("delete from imports where id = $1", import_id)


async def start(
    tx: Tx, actor: Actor, import_id: str, fields: Sequence[str], *, dry_run: bool,
    options: Options = DEFAULT,
) -> Import:  # fmt: skip
    """Let a waiting import run from its first line; after a dry run it waits again.

    Raises not_found, forbidden, conflict.
    """
    job = await own(tx, actor, import_id, lock=True)
    actor.must("write")
    if job.state != "waiting":
        raise Refusal("conflict", f"The import is {job.state}; only a waiting one can start.")
    await tx.run("delete from import_faults where import_id = $1", import_id)
    await tx.run("delete from import_faulty_lines where import_id = $1", import_id)
    await tx.run(
        """update imports set state = 'running', dry_run = $2, fields = $3, place = 0, done = 0,
          created = 0, updated = 0, unchanged = 0, faulty = 0, warnings = 0, kept_lines = 0,
          kept_characters = 0, run = run + 1, options = $4, paced_at = $5 where id = $1""",
        import_id, dry_run, json.encode(fields).decode(), json.encode(options).decode(), tx.now,
    )  # fmt: skip
    if dry_run:
        tx.changed.add(TRIED)
    else:
        audit.record(tx, actor, "imported", "import", import_id)
    return await own(tx, actor, import_id)


async def cancel(tx: Tx, actor: Actor, import_id: str) -> Import:
    """Cancel an import; one that has ended stays as it is. Raises not_found, forbidden.

    What it has written stays. The caller then clears its lines.
    """
    job = await own(tx, actor, import_id, lock=True)
    actor.must("write")
    if not job.is_open:
        return job
    await _end(tx, job.id, "cancelled", None)
    audit.record(tx, actor, "canceled", "import", job.id)
    if not any(job.fields):
        # Nobody has said that its first line is a heading.
        await tx.run("update imports set headings = '[]', fields = '[]' where id = $1", job.id)
    return await own(tx, actor, job.id)


async def fail(tx: Tx, import_id: str, reason: str) -> None:
    """End an import that cannot go on."""
    await _end(tx, import_id, "failed", reason)


async def _end(tx: Tx, import_id: str, state: str, reason: str | None, of: str = OPEN) -> int:
    return await tx.run(
        f"""update imports set state = $2, reason = $3, finished_at = $4
        where id = $1 and state in {of}""",
        import_id, state, reason, tx.now,
    )  # fmt: skip


async def clear(db: Database, import_id: str) -> None:
    """Delete the lines of an import that has ended, in small transactions."""
    upto: int | None = 0
    while upto is not None:
        lines = await db.read(
            import_lines.after, import_id, upto, DROPPED_AT_ONCE, DROPPED_CHARACTERS
        )
        upto = await db.write(_clear, import_id, lines[-1][0] if lines else None)


async def _clear(tx: Tx, import_id: str, upto: int | None) -> int | None:
    """Delete the lines up to `upto` of an import that has ended, or else some of its keys.

    Return the line up to which it is clear; None when nothing is left.
    """
    row = await tx.one(
        f"""select id from imports where id = $1 and state not in {OPEN} and lines_left = true
        /*postgres for update*/""",
        import_id,
    )
    if row is None:
        return None
    if upto is not None:
        await import_lines.drop_upto(tx, import_id, upto)
        return upto
    if await tx.run(_DROP_KEYS, import_id, DROPPED_AT_ONCE) >= DROPPED_AT_ONCE:
        return 0
    await tx.run("update imports set lines_left = $2 where id = $1", import_id, False)
    return None


async def own(tx: Tx, actor: Actor, import_id: str, *, lock: bool = False) -> Import:
    """Return an import of the actor. Raises not_found, forbidden."""
    job = await one(tx, import_id.lower(), lock=lock) if is_id(import_id) else None
    if job is None:
        raise Refusal("not_found", "There is no import with this id.")
    must_own(actor, job.owner_id, "import")
    return job


async def one(tx: Tx, import_id: str, *, lock: bool = False) -> Import | None:
    """Return an import of any owner, or None."""
    locked = "/*postgres for update*/" if lock else ""
    row = await tx.one(f"select * from imports where id = $1 {locked}", import_id)
    return None if row is None else import_of(row)


async def read(
    tx: Tx, actor: Actor, import_id: str, most: int = SHOWN_FAULTS
) -> tuple[Import, Sequence[LineFault]]:
    """Return an import of the actor with its first faults. Raises not_found, forbidden."""
    job = await own(tx, actor, import_id)
    actor.must("read")
    return job, await faults(tx, job.id, 0, most)


async def faults(tx: Tx, import_id: str, after: int, most: int) -> Sequence[LineFault]:
    """Return up to `most` faults that are kept, after so many, in the order of the lines."""
    rows = await tx.all(
        "select * from import_faults where import_id = $1 and nth > $2 order by nth limit $3",
        import_id, after, most,
    )  # fmt: skip
    return [
        LineFault(
            line=row["line"],
            heading=row["heading"],
            error=row["error"],
            field=row["field"] or "",
            code=row["code"] or "",
            value=row["value"],
            warning=bool(row["warning"]),
            values=json.decode(row["parameters"]),
        )
        for row in rows
    ]


async def listed(tx: Tx, actor: Actor) -> Sequence[Import]:
    """Return the latest imports of the actor. Raises forbidden."""
    actor.must("read")
    rows = await tx.all(
        "select * from imports where owner_id = $1 order by id desc limit $2",
        actor.owner_id, LISTED,
    )  # fmt: skip
    return [import_of(row) for row in rows]


def line_faults(
    job: Import, line: Line, faults: Sequence[Fault], *, warning: bool = False
) -> list[LineFault]:
    """Return the faults of a line, each with the heading of its column, if there is one."""
    number, cells = line
    told = []
    for fault in faults:
        name = fault.field.partition("[")[0].partition(".")[0]
        said = fault.sentence if fault.field else fault.message
        heading = heading_of(job.headings, job.fields, name) if name else ""
        place = job.headings.index(heading) if heading else len(cells)
        value = cells[place][:MOST_VALUE] if place < len(cells) else ""
        told.append(
            LineFault(
                line=number,
                heading=heading,
                error=said,
                field=fault.field,
                code=fault.code,
                value=value,
                warning=warning,
                values=fault.values,
            )
        )
    return told


def import_of(row: Row) -> Import:
    """Return the import of a row of its table."""
    return Import(
        id=row["id"],
        owner_id=row["owner_id"],
        plural=row["plural"],
        state=row["state"],
        dry_run=bool(row["dry_run"]),
        held=bool(row["held"]),
        headings=json.decode(row["headings"], type=list[str]),
        fields=json.decode(row["fields"], type=list[str]),
        encoding=row["encoding"],
        line_count=row["line_count"],
        place=row["place"],
        done=row["done"],
        created=row["created"],
        updated=row["updated"],
        unchanged=row["unchanged"],
        faulty=row["faulty"],
        reason=row["reason"],
        created_at=row["created_at"],
        finished_at=row["finished_at"],
        separator=row["separator"],
        options=json.decode(row["options"], type=Options),
        shown=json.decode(row["shown"], type=list[int]),
        run=row["run"],
        warnings=row["warnings"],
        kept_lines=row["kept_lines"],
        kept_characters=row["kept_characters"],
    )
