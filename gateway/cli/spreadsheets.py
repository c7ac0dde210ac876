"""`carteiro import` and `carteiro export`: records from and to a CSV file.

An import is the same job as in the API. The command moves it on until it ends, with or without a
server beside it.
"""

import asyncio
import os
import sys
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import aclosing, nullcontext
from pathlib import Path
from typing import IO

from gateway.cli import tables
from gateway.cli.commands import Say, existing, user_of
from gateway.cli.data.progress_bar import Progress
from gateway.cli.data.unfinished import unfinished
from gateway.domain.catalogue import BY_PLURAL
from gateway.domain.imports import column_notices, import_jobs, import_reports, import_uploads
from gateway.domain.imports.columns import parse, parse_each
from gateway.domain.imports.import_jobs import Import
from gateway.domain.imports.import_options import options_of
from gateway.domain.imports.import_steps import ENTRIES
from gateway.domain.imports.importing import Importing
from gateway.records import exports
from gateway.records.audit import Actor
from gateway.records.query import Query
from gateway.server.config import Config
from gateway.server.program import program_version
from gateway.server.telemetry import logs
from outbox.database.transaction import Database, Row
from outbox.errors import CannotStart, OutboxError

PIECE = 65_536
SHOWN = 20
"""Faults that are printed; the API and the console have more of them."""


class NotAll(OutboxError):
    """Some lines were not imported; the text says how many."""


async def import_(config: Config, arguments: Namespace, say: Say) -> None:
    """Import a file. Raise CannotStart, Refusal, NotAll."""
    plural, file = _named(arguments)
    entry = ENTRIES.get(plural)
    if entry is None:
        name = "TYPE" if arguments.type is None else "--type"
        raise CannotStart(f"{name} must be one of {', '.join(ENTRIES)}")
    named = None if arguments.columns is None else parse(arguments.columns)
    if arguments.column:
        named = {**(named or {}), **parse_each(arguments.column)}
    choices = import_uploads.Choices(named, options_of(vars(arguments)), arguments.dry_run)
    mend = None if arguments.faulty is None else Path(arguments.faulty)
    async with existing(config) as db:
        actor = _actor(await user_of(db, arguments.owner))
        with nullcontext() if mend is None else unfinished(mend) as target:
            sent = import_uploads.SentFile(_pieces(Path(file)), lambda: choices)
            received = await import_uploads.receive(db, actor, entry, sent, end=db.write)
            job = await _ended(db, actor, received.id)
            await _tell(db, actor, job, say)
            if target is not None and (job.faulty or job.warnings):
                await _write_faulty(db, job, target, arguments.faulty)
        if mend is not None and mend.exists():
            say(f"The faulty lines are in {mend}.")
        if job.state != "done":
            raise NotAll(f"the import is {job.state}: {job.reason or 'somebody cancelled it'}")
        if job.faulty:
            mended = "line is faulty; correct and import it again"
            if job.faulty > 1:
                mended = "lines are faulty; correct and import them again"
            raise NotAll(f"{job.faulty} {mended}")


async def _tell(db: Database, actor: Actor, job: Import, say: Say) -> None:
    """Say what became of the lines of an import."""
    _, faults = await db.read(import_jobs.read, actor, job.id)
    for fault in faults[:SHOWN]:
        where = f"line {fault.line}" + (f", {fault.heading}" if fault.heading else "")
        consequence = f" ({import_reports.WITHOUT})" if fault.warning else ""
        say(tables.inert(f"{where}: {fault.error}{consequence}"))
    if len(faults) > SHOWN:
        say(f"… GET /api/imports/{job.id}/faults.csv has more.")
    for notice in column_notices.of(ENTRIES[job.plural].resource, job.headings, job.fields):
        say(tables.inert(notice.text))
    would = "would be " if job.dry_run else ""
    say(
        f"{_count(job.line_count, 'line')}: {job.created} {would}created, {job.updated} "
        f"{would}updated, {job.unchanged} unchanged, {job.faulty} faulty."
    )
    if job.warnings:
        say(f"{_count(job.warnings, 'cell')} left out of imported lines.")


async def export(config: Config, arguments: Namespace, say: Say) -> None:
    """Write the records of an account to standard output. Raise CannotStart."""
    if arguments.type not in BY_PLURAL:
        raise CannotStart(f"TYPE must be one of {', '.join(BY_PLURAL)}")
    async with existing(config) as db:
        actor = _actor(await user_of(db, arguments.owner))
        lines = exports.export(
            db, actor, BY_PLURAL[arguments.type], Query(),
            separator=exports.SEPARATORS[arguments.separator], bom=arguments.bom,
            numbers=arguments.numbers,
        )  # fmt: skip
        async with aclosing(lines):
            async for piece in lines:
                sys.stdout.write(piece.decode())
        sys.stdout.flush()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


async def _write_faulty(db: Database, job: Import, target: IO[bytes], name: str) -> None:
    """Write the faulty lines to a file. Raise CannotStart."""
    try:
        async for piece in import_reports.lines(db, job, bom=True):
            rest = memoryview(piece)
            while rest:
                rest = rest[target.write(rest) :]
        os.fsync(target.fileno())
    except OSError as error:
        raise CannotStart(f"{name} cannot be written: {error.strerror}") from None


def _named(arguments: Namespace) -> tuple[str, str]:
    """Return the type and the file of an import: two words, or `--type` and a word."""
    words = [word for word in (arguments.type, arguments.first, arguments.file) if word]
    if len(words) != 2:
        raise CannotStart("enter TYPE and FILE, such as: carteiro import contacts leads.csv")
    return words[0], words[1]


def _actor(user: Row) -> Actor:
    return Actor(user["id"], "system", zone=user["timezone"])


async def _pieces(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as source:
        while piece := source.read(PIECE):
            yield piece


async def _ended(db: Database, actor: Actor, import_id: str) -> Import:
    """Move the import on until it ends; return it. Cancelled by Ctrl-C, it cancels the import."""
    # A server logs what happens; a person needs the errors.
    logs.configure(
        "error", clock=db.clock, node=db.ids.new(db.clock.wall()), version=program_version()
    )
    runner = Importing(db)
    try:
        with Progress("import", sys.stderr, db.clock) as progress:
            while (job := await db.read(import_jobs.own, actor, import_id)).is_open:
                progress.at(job.done / max(job.line_count, 1), f"{job.done} of {job.line_count}")
                await runner.step(job)
                await asyncio.sleep(0)
        await import_jobs.clear(db, import_id)
        return job
    except asyncio.CancelledError:
        job = await db.write(import_jobs.cancel, actor, import_id)
        await import_jobs.clear(db, import_id)
        sys.stderr.write(
            f"carteiro: {job.done} of {job.line_count} lines imported, the import is cancelled; "
            "the same command again updates these and does the rest\n"
        )
        raise
