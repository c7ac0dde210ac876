"""Moves an import on: some lines in a transaction, which also counts and deletes these lines.

So each line is imported once, wherever a process dies. A line that its resource refuses must leave
nothing behind, and no transaction can take back a part: then the lines before it are committed, and
after that its fault alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gateway.domain import import_lines
from gateway.domain.accounts import users
from gateway.domain.catalogue import CATALOGUE, Entry
from gateway.domain.import_lines import Line
from gateway.domain.imports import companies, jobs, matching
from gateway.domain.imports.filling import Filling
from gateway.domain.imports.jobs import MOST_FAULTS, Import, LineFault
from gateway.domain.imports.matching import Ahead
from gateway.domain.imports.reading import ReadLine, read_line
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.draft import Draft, check
from gateway.records.errors import Fault, Refusal
from gateway.records.values.folding import fold
from gateway.records.values.format import of_json
from outbox.database.sql import insert
from outbox.database.transaction import Database, Tx

MOST = {"sqlite": 50, "postgres": 100}
"""Lines of one transaction; on SQLite other writes wait for it."""
ENTRIES: Mapping[str, Entry] = {
    entry.resource.plural: entry for entry in CATALOGUE if entry.create is not None
}
"""The resources whose records can be imported, by their plural."""
_ADVANCE = """
update imports set place = $2, done = done + $3, created = created + $4, updated = updated + $5,
  unchanged = unchanged + $6, faulty = faulty + $7, paced_at = $8 where id = $1
"""
_FINISH = """
update imports set state = $2, done = line_count, lines_left = $3, finished_at = $4 where id = $1
"""


@dataclass(slots=True)
class _Sum:
    """What some lines came to."""

    place: int
    done: int = 0
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    faulty: int = 0
    faults: list[LineFault] = field(default_factory=list)

    def refuse(self, faults: Sequence[LineFault]) -> None:
        self.faulty += 1
        self.faults += faults


class _LineRefused(Exception):
    """A line is refused that may have written something."""

    def __init__(self, line: int, faults: Sequence[Fault]) -> None:
        super().__init__(line)
        self.line = line
        self.faults = faults


class _Undo(Exception):
    """Ends the transaction of a dry run, which leaves nothing."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A refused line, up to which a transaction goes."""

    line: int
    faults: Sequence[Fault]


async def step(db: Database, job: Import, most: int | None = None) -> None:
    """Move a running import on by up to `most` lines, or end it."""
    most = most or MOST[db.engine]
    if job.dry_run:
        total = _Sum(job.place)
        try:
            await db.write(_try, job, most, total)
        except _Undo:
            await db.write(_note, job, total)
        return
    known: _Known | None = None
    while True:
        try:
            await db.write(_advance, job, most, known)
        except _LineRefused as refused:
            # Each is before the one that is known, so this ends.
            known = _Known(refused.line, refused.faults)
        else:
            return


async def _try(tx: Tx, job: Import, most: int, total: _Sum) -> None:
    """Import lines as if, into `total`. Raises _Undo."""
    # The unit may run again.
    fresh = _Sum(job.place)
    if await _locked(tx, job):
        work = await _Work.of(tx, job, await import_lines.after(tx, job.id, job.place, most))
        for line in work.lines:
            try:
                await _import(tx, work, line, fresh)
            except _LineRefused as refused:
                fresh.refuse(jobs.line_faults(job, refused.line, refused.faults))
            fresh.place, fresh.done = line.number, fresh.done + 1
    for name in ("place", "done", "created", "updated", "unchanged", "faulty", "faults"):
        setattr(total, name, getattr(fresh, name))
    raise _Undo


async def _note(tx: Tx, job: Import, total: _Sum) -> None:
    """Store what a dry run has found."""
    if await _locked(tx, job):
        await _save(tx, job, total)


async def _advance(tx: Tx, job: Import, most: int, known: _Known | None) -> None:
    """Import the next lines, up to the refused one that is known. Raises _LineRefused."""
    if not await _locked(tx, job):
        return
    total = _Sum(job.place)
    work = await _Work.of(tx, job, await import_lines.after(tx, job.id, job.place, most), known)
    for line in work.lines:
        if known is not None and line.number >= known.line:
            if line.number > known.line:
                break
            total.refuse(jobs.line_faults(job, known.line, known.faults))
        else:
            await _import(tx, work, line, total)
        total.place, total.done = line.number, total.done + 1
    await _save(tx, job, total)


async def _locked(tx: Tx, job: Import) -> bool:
    """Lock the import; return whether it is still where it was."""
    row = await tx.one(
        """select id from imports where id = $1 and state = 'running' and place = $2
        /*postgres for update*/""",
        job.id, job.place,
    )  # fmt: skip
    return row is not None


async def _save(tx: Tx, job: Import, total: _Sum) -> None:
    """Store the place, the counts and the faults; delete the lines; end the import at its end."""
    if not total.done:
        if job.dry_run and job.held:
            await tx.run(
                "update imports set state = 'waiting', done = line_count where id = $1", job.id
            )
            return
        await tx.run(_FINISH, job.id, "done", False, tx.now)
        return
    await tx.run(
        _ADVANCE, job.id, total.place, total.done, total.created, total.updated, total.unchanged,
        total.faulty, tx.now,
    )  # fmt: skip
    if not (job.held and job.dry_run):
        await import_lines.drop_upto(tx, job.id, total.place)
    if total.faults:
        await _keep(tx, job, total.faults)


async def _keep(tx: Tx, job: Import, faults: Sequence[LineFault]) -> None:
    row = await tx.one(
        "select coalesce(max(nth), 0) as nth from import_faults where import_id = $1", job.id
    )
    had = 0 if row is None else int(row["nth"])
    rows = [
        (job.id, nth, fault.line, fault.heading, fault.error, fault.field, fault.code)
        for nth, fault in enumerate(faults[: MOST_FAULTS - had], start=had + 1)
    ]
    columns = ("import_id", "nth", "line", "heading", "error", "field", "code")
    await insert(tx, "import_faults", columns, rows)


@dataclass(frozen=True, slots=True)
class _Work:
    """The lines of a transaction, and what is known of them before."""

    job: Import
    entry: Entry
    actor: Actor
    lines: Sequence[ReadLine]
    ahead: Ahead
    companies: Mapping[str, str]
    """The ids of the companies of these lines, by their folded names."""

    @classmethod
    async def of(
        cls, tx: Tx, job: Import, lines: Sequence[Line], known: "_Known | None" = None
    ) -> "_Work":
        entry = ENTRIES[job.plural]
        zone = await users.zone_of(tx, job.owner_id)
        actor = Actor(job.owner_id, "system", zone=zone, cause="import")
        filling = Filling(entry.resource, job.headings, job.fields)
        read = [read_line(entry.resource, filling, line) for line in lines]
        ahead = await matching.look_ahead(
            tx, actor, entry.resource, [(line.record_id, line.new) for line in read]
        )
        # Before all lines, because rows that are put off go in the order of their tables; none for
        # a line that is refused.
        names = [
            line.company for line in read
            if line.company and not line.crowded
            and all(fault.code == "required" for fault in line.new.faults)
            and (known is None or line.number < known.line)
        ]  # fmt: skip
        return cls(job, entry, actor, read, ahead, await companies.ids_of(tx, actor, names))


async def _import(tx: Tx, work: _Work, line: ReadLine, total: _Sum) -> None:
    """Write one line, or count its faults. Raises _LineRefused."""
    job, entry, actor = work.job, work.entry, work.actor
    assert entry.create is not None
    if line.crowded:
        total.refuse([LineFault(line.number, "", _crowded(len(job.headings)))])
        return
    found = await matching.find(
        tx, actor, entry.resource, job, line.record_id, line.new, work.ahead
    )
    draft = line.new
    if found is not None:
        draft = check(entry.resource, line.sent, read=of_json)
        draft.faults[:0] = line.wrong
    company_id = work.companies.get(fold(line.company)) if line.company else None
    if company_id is not None and "companyId" not in draft.sent:
        # It is there, so that nothing has to look for it again.
        draft.values["company_id"] = company_id
    if draft.faults:
        total.refuse(jobs.line_faults(job, line.number, _one_each(draft.faults)))
        return
    try:
        if found is None:
            await entry.create(tx, actor, draft)
            total.created += 1
        elif await _change(tx, actor, entry, found, draft):
            total.updated += 1
            # Rows that are put off go in the order of their tables: those of this record must not
            # make the index rows of a later new record precede it. A write ends the wait.
            await import_lines.drop_upto(tx, job.id, line.number)
        else:
            total.unchanged += 1
    except Refusal as refusal:
        faults = refusal.faults or [Fault("", refusal.code, str(refusal))]
        raise _LineRefused(line.number, faults) from None
    matching.note(entry.resource, work.ahead, line.new)


async def _change(tx: Tx, actor: Actor, entry: Entry, found: tuple[str, int], draft: Draft) -> bool:
    """Update a record; return whether that changed it. Raises Refusal."""
    record_id, version = found
    if entry.change is None:
        record = await actions.change(tx, actor, entry.resource, record_id, draft)
    else:
        record = await entry.change(tx, actor, record_id, draft, None)
    return record.version != version


def _one_each(faults: Sequence[Fault]) -> Sequence[Fault]:
    """Return the first fault of each field: a cell that cannot be read also lacks its value."""
    first: dict[str, Fault] = {}
    for fault in faults:
        first.setdefault(fault.field, fault)
    return [*first.values()]


def _crowded(columns: int) -> str:
    return (
        f"This line has more cells than the {columns} of the heading; put a cell that contains the "
        "separator in quotes."
    )
