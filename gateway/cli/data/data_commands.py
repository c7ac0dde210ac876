"""The commands `carteiro backup`, `restore` and `copy`. They raise their failures."""

from __future__ import annotations

import asyncio
import signal
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from contextvars import ContextVar
from functools import wraps
from pathlib import Path

from gateway.cli.data import backup_keys
from gateway.cli.data.archive import ArchiveReader, ArchiveWriter, Manifest
from gateway.cli.data.progress_bar import Progress
from gateway.cli.data.target_filling import (
    Batches,
    departing,
    fill,
    must_be_known,
    must_be_ours,
    own_tables,
)
from gateway.cli.data.unfinished import unfinished
from gateway.cli.moving.target import url_of
from gateway.cli.pause import told_of_pause
from gateway.domain.product_ownership import UNOWNED
from gateway.records.values import dates
from gateway.server import startup
from gateway.server.config import Config
from gateway.server.program import program_version
from outbox.clock import SystemClock
from outbox.database import transfer_ends
from outbox.database.migrate import pending
from outbox.database.sqlite.handover import handed_over
from outbox.database.transfer import Place, Table
from outbox.errors import CannotStart, DatabaseUnavailable
from outbox.ids import Ids
from outbox.queue.upkeep import queue_transfer

Command = Callable[[Config, Namespace, Callable[[str], None]], Awaitable[None]]
_done: ContextVar[asyncio.Event] = ContextVar("done")
"""Set once what the command is for is done."""


def ended_by_signal(command: Command) -> Command:
    """Return `command` with SIGTERM as a refusal of one line."""

    @wraps(command)
    async def run(config: Config, arguments: Namespace, say: Callable[[str], None]) -> None:
        task = asyncio.current_task()
        assert task is not None
        ended, done = False, asyncio.Event()
        _done.set(done)

        def end() -> None:
            nonlocal ended
            # The loop may have read the signal before the change and call this after it.
            if not done.is_set():
                ended = True
                task.cancel()

        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, end)
        try:
            await command(config, arguments, say)
        except asyncio.CancelledError:
            if not ended:
                raise
            if done.is_set():
                # The command has outlived SIGTERM: this is another interruption.
                task.uncancel()
                raise
            raise CannotStart("ended by SIGTERM; nothing is changed") from None
        finally:
            loop.remove_signal_handler(signal.SIGTERM)

    return run


def changed() -> None:
    """Ignore SIGTERM from now on: what the command is for is done, and it ends soon."""
    _done.get().set()


Say = Callable[[str], None]


@ended_by_signal
async def backup(config: Config, arguments: Namespace, say: Say) -> None:
    """Write all data to a file, also beside a running server."""
    place = _place(config)
    startup.must_exist(config)
    ring = backup_keys.of(config, place.ids)
    if arguments.with_key and ring is None:
        raise CannotStart("there is no key file for --with-key; without webhooks none is needed")
    with unfinished(Path(arguments.file)) as handle:
        async with transfer_ends.snapshot(place, own_tables(place.engine)) as source:
            must_be_known(source.migrations, "the database")
            foreign = await backup_keys.objection(source, config, ring)
            if foreign is not None and arguments.with_key:
                raise CannotStart(foreign)
            manifest = Manifest(
                made_at=place.clock.wall(),
                version=program_version(),
                engine=source.engine,
                migrations=tuple(source.migrations),
                tables=tuple(source.tables),
                key_ids=ring.key_ids
                if ring and foreign is None
                else await backup_keys.needed(source),
                keys=backup_keys.text(config) if arguments.with_key else None,
            )
            archive = ArchiveWriter(handle, arguments.file, manifest)
            counts = {table.name: 0 for table in source.tables}
            expected = max(sum(table.rows for table in source.tables), 1)
            with _progress("backup", place) as progress:
                before = ""
                async with aclosing(departing(source)) as batches:
                    async for table, rows in batches:
                        if table.name != before:
                            archive.table(table.name)
                            before = table.name
                        archive.rows(rows)
                        counts[table.name] += len(rows)
                        progress.at(sum(counts.values()) / expected, table.name)
            size = archive.end(counts)
    changed()
    await _remember(config, manifest.made_at, say)
    for note in source.notes:
        say(f"Note: {note}.")
    if counts.get("images"):
        say(
            f"Note: the files of {counts['images']:,} uploaded images are not in it; "
            f"{startup.images_at(config)}."
        )
    say(f"Wrote {arguments.file}: {sum(counts.values()):,} rows, {_size(size)}.")
    if arguments.with_key:
        say("The keys are in it: whoever has the file can read the secrets of webhooks.")
    elif foreign is not None:
        say(f"Note: {foreign}.")
    elif ring is not None:
        say(
            f"The key file {backup_keys.shown(config)} is not in it: keep a copy of it apart, "
            "because only it can decrypt the secrets of webhooks."
        )


@ended_by_signal
async def restore(config: Config, arguments: Namespace, say: Say) -> None:
    """Put the data of a backup into the configured database, all of it or nothing."""
    file, place = Path(arguments.file), _place(config)
    archive = ArchiveReader(file)
    try:
        manifest = archive.manifest
        upto = must_be_known(manifest.migrations, str(file))
        must_be_ours(manifest.tables, manifest.engine, str(file))
        backup_keys.must_fit(manifest.keys, manifest.key_ids, place.ids, str(file))
        if arguments.check:
            count = sum(len(rows) for _, rows in archive.rows())
            say(f"{file} is whole: {count:,} rows, as they were at {dates.show(manifest.made_at)}.")
            return
        startup.must_have_folder(config)
        missing = backup_keys.missing(config, manifest.key_ids, manifest.keys, place.ids)
        with _progress("restore", place) as progress:

            def seen(table: Table, rows: int) -> None:
                progress.at(archive.place / archive.size, table.name)

            async with transfer_ends.filling(
                place, startup.SOURCES, unowned=None if arguments.overwrite else UNOWNED
            ) as new:
                total = await fill(new, manifest.tables, upto, _batches(archive), seen, progress)
                if arguments.pause:
                    await new.run(queue_transfer.pause_all)
                paused = await new.run(told_of_pause)
                await backup_keys.must_open(
                    new, config, manifest.keys if missing else None, place.ids
                )
                await new.commit(lambda: backup_keys.put_back(config, missing, manifest.keys))
                changed()
    finally:
        archive.close()
    for note in new.notes:
        say(f"Note: {note}.")
    say(f"Restored {total:,} rows, as they were at {dates.show(manifest.made_at)}.")
    for line in paused:
        say(line)
    if missing and manifest.keys is None:
        say(f"Before you serve it, put the key file {backup_keys.shown(config)} back.")


@ended_by_signal
async def copy(config: Config, arguments: Namespace, say: Say) -> None:
    """Move all data from the configured SQLite file to an empty PostgreSQL database."""
    place = _place(config)
    to = url_of(arguments.to)
    target = Place(to, place.clock, place.ids)
    if place.engine != "sqlite" or target.engine != "postgres":
        raise CannotStart(
            "copy goes from SQLite to PostgreSQL; for other ways use `carteiro backup` and "
            "`carteiro restore`"
        )
    startup.must_exist(config)
    with _progress("copy", place) as progress, handed_over(place, to) as source_is:
        async with transfer_ends.snapshot(place, own_tables("sqlite")) as source:
            upto = must_be_known(source.migrations, "the database")
            await backup_keys.must_belong(source, config, backup_keys.of(config, place.ids))
            expected = max(sum(table.rows for table in source.tables), 1)

            def seen(table: Table, rows: int) -> None:
                progress.at(rows / expected, table.name)

            async with transfer_ends.filling(target, startup.SOURCES, unowned=UNOWNED) as new:
                total = await fill(new, source.tables, upto, departing(source), seen, progress)
                paused = await new.run(told_of_pause)
                await new.commit(source_is.hand_over)
                source_is.done()
                changed()
    for note in (*source.notes, *new.notes):
        say(f"Note: {note}.")
    say(f"Copied {total:,} rows. {place.path} keeps its data and can no longer be served.")
    say("Set database.url to the new database, and serve it with the same key file:")
    say(f"  CARTEIRO_SECRETS__KEY_FILE={backup_keys.shown(config)}")
    for line in paused:
        say(line)


async def _remember(config: Config, made_at: int, say: Say) -> None:
    """Store the time of the backup for the metric of its age; the backup is good without it."""
    reason = "its schema is older than this program"
    try:
        db = await startup.open_database(config, SystemClock(), Ids())
        try:
            if not await pending(db, startup.SOURCES):
                await db.write(queue_transfer.backed_up, made_at)
                return
        finally:
            await db.close()
    except (CannotStart, DatabaseUnavailable) as error:
        reason = str(error)
    say(f"Note: the database could not store the time of this backup: {reason}.")


async def _batches(archive: ArchiveReader) -> Batches:
    for table, rows in archive.rows():
        yield table, rows


def _place(config: Config) -> Place:
    settings = config.database
    return Place(
        settings.url, SystemClock(), Ids(), settings.direct_url, settings.synchronous_commit
    )


def _progress(what: str, place: Place) -> Progress:
    return Progress(what, sys.stderr, place.clock)


def _size(count: int) -> str:
    return f"{count / 2**20:,.1f} MiB" if count >= 2**20 else f"{count / 2**10:,.1f} KiB"
