"""Moves an import on: some lines in a transaction, which also counts and deletes these lines.

So each line is imported once, wherever a process dies. The lines are read and parsed before the
transaction, on a thread, once for all its tries. A line that its resource refuses must leave
nothing behind, and no transaction can take back a part: then the lines before it are committed, and
after that its fault alone.

It is one module because each of its functions is a part of this one transaction.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from gateway.domain import import_lines, record_origins
from gateway.domain.accounts import users
from gateway.domain.catalogue import CATALOGUE, Entry
from gateway.domain.import_lines import Line
from gateway.domain.imports import company_names, import_jobs, matching, written_forms
from gateway.domain.imports.field_filling import Filling
from gateway.domain.imports.import_jobs import Import
from gateway.domain.imports.import_options import LAST, LENIENT
from gateway.domain.imports.line_reading import ReadLine, base, read_line
from gateway.domain.imports.matching import Ahead
from gateway.domain.imports.outcomes import Outcomes
from gateway.domain.imports.repeated_lines import Repeats
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.errors import Fault, Refusal
from gateway.records.record import Draft, Record, check
from gateway.records.resource import Resource
from gateway.records.values.folding import fold
from outbox.database.transaction import Database, Tx

MOST = {"sqlite": 50, "postgres": 100}
"""Lines of one transaction; on SQLite other writes wait for it."""
CHARACTERS = 65_536
"""Characters of these lines, as they are stored; a line that has more is alone in a transaction."""
ENTRIES: Mapping[str, Entry] = {
    entry.resource.plural: entry for entry in CATALOGUE if entry.create is not None
}
"""The resources whose records can be imported, by their plural."""
_ADVANCE = """
update imports set place = $2, done = done + $3, created = created + $4, updated = updated + $5,
  unchanged = unchanged + $6, faulty = faulty + $7, paced_at = $8, warnings = warnings + $9
where id = $1
"""
_FINISH = """
update imports set state = $2, done = line_count, lines_left = $3, finished_at = $4 where id = $1
"""


class _LineRefused(Exception):
    """A line is refused that may have written something."""

    def __init__(self, line: ReadLine, faults: Sequence[Fault]) -> None:
        super().__init__(line.number)
        self.line = line
        self.faults = faults


class _Undo(Exception):
    """Ends the transaction of a dry run, which leaves nothing."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A refused line, up to which a transaction goes."""

    line: int
    faults: Sequence[Fault]
    without: bool
    """Whether the line is tried once more, without the fields with these faults."""


async def step(db: Database, job: Import, most: int | None = None) -> None:
    """Move a running import on by up to `most` lines, or end it.

    Each line that the database refuses ends a transaction, and the others go on in the next one.
    """
    lines, zone = await db.read(_next, job, most or MOST[db.engine])
    # Also on PostgreSQL, where units run on the event loop, for which all requests wait.
    read = await asyncio.to_thread(_read, job, lines, zone) if lines else []
    while await _take(db, job, read, zone) not in (job.place, *(one.number for one in read[-1:])):
        moved = await db.read(import_jobs.one, job.id)
        if moved is None or (moved.state, moved.run) != (job.state, job.run):
            return
        job, read = moved, [line for line in read if line.number > moved.place]


async def _take(db: Database, job: Import, read: Sequence[ReadLine], zone: str) -> int:
    """Import lines up to the first that the database refuses; return the last one.

    Without any, end the import.
    """
    known: _Known | None = None
    while True:
        total = Outcomes(job.place)
        try:
            await db.write(_advance, job, read, zone, known, total)
        except _LineRefused as refused:
            # Each is before the one that is known, or tried for the last time, so this ends.
            line, faults = refused.line, refused.faults
            again = known is None or known.line > line.number
            known = _Known(line.number, faults, again and _can_do_without(job, line, faults))
        except _Undo:
            await db.write(_note, job, total)
            return total.place
        else:
            return total.place


async def _next(tx: Tx, job: Import, most: int) -> tuple[Sequence[Line], str]:
    """Return the next lines of an import, and the time zone of its owner."""
    lines = await import_lines.after(tx, job.id, job.place, most, CHARACTERS)
    return lines, await users.zone_of(tx, job.owner_id)


def _read(job: Import, lines: Sequence[Line], zone: str) -> Sequence[ReadLine]:
    """Return lines with their values."""
    resource = ENTRIES[job.plural].resource
    written = written_forms.written(
        resource, job.fields, job.shown, job.separator, job.options, zone
    )
    filling = Filling(resource, job.headings, job.fields)
    return [read_line(resource, filling, line, written) for line in lines]


async def _note(tx: Tx, job: Import, total: Outcomes) -> None:
    """Store what a dry run has found."""
    if await _locked(tx, job):
        await _save(tx, job, total)


async def _advance(
    tx: Tx, job: Import, lines: Sequence[ReadLine], zone: str, known: _Known | None, total: Outcomes
) -> None:
    """Import the next lines into `total`, up to the refused one that is known.

    Raises _LineRefused, and _Undo at the end of a dry run.
    """
    # The unit may run again.
    total.clear(job.place)
    if await _locked(tx, job):
        work = await _Work.of(tx, job, lines, zone)
        for line in lines:
            if known is not None and line.number > known.line:
                break
            if line.number not in work.there:
                # An erasure has deleted it since.
                total.place = line.number
                continue
            if known is None or line.number < known.line:
                await _import(tx, work, line, total)
            elif known.without:
                await _import(tx, work, line.without(work.entry.resource, known.faults), total)
            else:
                total.refuse(job, line, known.faults)
            total.place, total.done = line.number, total.done + 1
        total.keys = work.repeats.rows
        if not job.dry_run:
            await _save(tx, job, total)
    if job.dry_run:
        raise _Undo


async def _locked(tx: Tx, job: Import) -> bool:
    """Lock the import; return whether it is still where it was, and was not started again."""
    row = await tx.one(
        """select id from imports where id = $1 and state = 'running' and place = $2 and run = $3
        /*postgres for update*/""",
        job.id, job.place, job.run,
    )  # fmt: skip
    return row is not None


async def _save(tx: Tx, job: Import, total: Outcomes) -> None:
    """Store the place, the counts and the faults; delete the lines; end the import at its end."""
    if total.place == job.place:
        if job.dry_run and job.held:
            await tx.run(
                "update imports set state = 'waiting', done = line_count where id = $1", job.id
            )
            return
        # Its keys are still there.
        await tx.run(_FINISH, job.id, "done", job.options.duplicates != LAST, tx.now)
        return
    await tx.run(
        _ADVANCE, job.id, total.place, total.done, total.created, total.updated, total.unchanged,
        total.faulty, tx.now, total.warnings,
    )  # fmt: skip
    if not (job.held and job.dry_run):
        await import_lines.drop_upto(tx, job.id, total.place)
    await total.save(tx, job)


@dataclass(frozen=True, slots=True)
class _Work:
    """The lines of a transaction, and what is known of them before."""

    job: Import
    entry: Entry
    actor: Actor
    there: Collection[int]
    """The lines that are still there."""
    ahead: Ahead
    repeats: Repeats
    companies: dict[str, str]
    """The ids of companies that lines name, by their folded names."""

    @classmethod
    async def of(cls, tx: Tx, job: Import, lines: Sequence[ReadLine], zone: str) -> "_Work":
        entry = ENTRIES[job.plural]
        actor = Actor(job.owner_id, "system", zone=zone, cause="import")
        last = lines[-1].number if lines else job.place
        still = await import_lines.there(tx, job.id, job.place, last) if lines else ()
        read = [line for line in lines if line.number in still]
        repeats = Repeats(job, entry.resource)
        await repeats.look_ahead(tx, read)
        named = [
            origin for line in read for origin in record_origins.named(entry.resource, line.sent)
        ]
        known = await matching.look_ahead(
            tx, actor, entry.resource, [(line.record_id, line.new) for line in read], named
        )
        there = await company_names.find(tx, actor, [line.company for line in read if line.company])
        return cls(job, entry, actor, there=still, ahead=known, repeats=repeats, companies=there)


async def _import(tx: Tx, work: _Work, line: ReadLine, total: Outcomes) -> None:
    """Write one line, or count its faults. Raises _LineRefused."""
    job, entry, actor = work.job, work.entry, work.actor
    assert entry.create is not None
    refused = _crowded(len(job.headings)) if line.crowded else work.repeats.fault_of(line)
    if refused is not None:
        total.refuse(job, line, [refused])
        return
    stored = await matching.find(
        tx, actor, entry.resource, job, line.record_id, draft=line.new, ahead=work.ahead
    )
    content, state = _drafts(entry.resource, line, stored, work.ahead)
    faults = _one_each([*content.faults, *state.faults])
    content.faults, state.faults = [], []
    if not all(_is_optional(job, fault) for fault in faults):
        total.refuse(job, line, faults)
        return
    if line.lines and stored is not None:
        matching.add_notes(stored, content, line.lines)
    if line.company and "companyId" not in line.sent:
        # It is there, so that nothing has to look for it again.
        content.values["company_id"] = await _company(tx, work, line, total)
    try:
        if stored is None:
            record = await entry.create(tx, actor, content)
        else:
            record = await _change(tx, actor, entry, stored, content)
        if entry.restore is not None and (stored is None or state.sent):
            record = await entry.restore(tx, actor, record, state)
        if stored is None:
            total.created += 1
        elif record.version != stored.version:
            total.updated += 1
        else:
            total.unchanged += 1
    except Refusal as refusal:
        more = refusal.faults or [Fault("", refusal.code, str(refusal))]
        raise _LineRefused(line, more) from None
    total.warn(job, line, faults, record.id)
    matching.note(entry.resource, work.ahead, line.new)
    record_origins.note(tx, actor.owner_id, work.ahead.origins, line.record_id, record.id)
    work.repeats.note(line)


async def _company(tx: Tx, work: _Work, line: ReadLine, total: Outcomes) -> str:
    """Return the id of the company of a line, which is created if it is not there."""
    folded = fold(line.company)
    if folded not in work.companies:
        # Rows that are put off go in the order of their tables: those of a company must precede
        # those of later lines. A write ends the wait.
        await import_lines.drop_upto(tx, work.job.id, total.place)
        work.companies[folded] = await company_names.create(tx, work.actor, line.company)
    return work.companies[folded]


def _is_optional(job: Import, fault: Fault) -> bool:
    """Return whether a line can be imported without the field of a fault."""
    field = ENTRIES[job.plural].resource.named.get(base(fault.field))
    return job.options.mode == LENIENT and field is not None and not field.required


def _can_do_without(job: Import, line: ReadLine, faults: Sequence[Fault]) -> bool:
    """Return whether a refused line can be imported without the fields with these faults."""
    return all(_is_optional(job, fault) and base(fault.field) in line.sent for fault in faults)


def _drafts(
    resource: Resource, line: ReadLine, record: Record | None, ahead: Ahead
) -> tuple[Draft, Draft]:
    """Return the drafts of a line: of the content of its record, and of the state after that."""
    sent = record_origins.translated(resource, line.sent, ahead.origins)
    if record is not None:
        sent = matching.differing(record, sent)
    restored = {name: value for name, value in sent.items() if name in resource.restored}
    state = check(resource, restored, from_json=True, takes=[*restored])
    if record is not None:
        content = {name: value for name, value in sent.items() if name not in restored}
        draft = check(resource, content, from_json=True)
        draft.faults[:0] = line.wrong
        return draft, state
    changed = {name: value for name, value in sent.items() if value != line.sent[name]}
    if not changed:
        # A copy, as what is written may be completed, and the line may be tried again.
        new = line.new
        return Draft(dict(new.values), dict(new.sent), list(new.faults)), state
    own = check(resource, changed, from_json=True, takes=[*changed])
    return Draft(
        {**line.new.values, **own.values},
        {**line.new.sent, **own.sent},
        [*line.new.faults, *own.faults],
    ), state


async def _change(tx: Tx, actor: Actor, entry: Entry, found: Record, draft: Draft) -> Record:
    """Return a record with the changes of a draft. Raises Refusal."""
    if not draft.values:
        return found
    if entry.change is None:
        return await actions.change(tx, actor, entry.resource, found.id, draft)
    return await entry.change(tx, actor, found.id, draft, None)


def _one_each(faults: Sequence[Fault]) -> Sequence[Fault]:
    """Return the first fault of each field: a cell that cannot be read also lacks its value."""
    first: dict[str, Fault] = {}
    for fault in faults:
        first.setdefault(fault.field, fault)
    return [*first.values()]


def _crowded(columns: int) -> Fault:
    return Fault(
        "",
        "crowded",
        "This line has more cells than the {columns} of the heading; put a cell that contains the "
        "separator in quotes.",
        {"columns": columns},
    )
