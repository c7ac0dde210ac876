"""Hand an SQLite database over to another one: only one of the two may send its deliveries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from outbox import private_files
from outbox.database.database_urls import without_password
from outbox.database.sqlite.file import File, copied_mark
from outbox.database.transfer import Place
from outbox.errors import OutcomeUnknown


class Handover:
    """A mark file that blocks serving; it is written before the target may send."""

    def __init__(self, place: Place, target: str) -> None:
        self.mark = copied_mark(place.path)
        self.end = f" was copied to {without_password(target)}"
        self.text = f"{place.path}{self.end}"
        self.is_done = False

    def hand_over(self) -> None:
        """Write the mark to the disk."""
        number = os.open(self.mark, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, private_files.FILE)
        with os.fdopen(number, "w", encoding="utf-8") as handle:
            handle.write(f"{self.text}\n")
            handle.flush()
            os.fsync(handle.fileno())
        folder = os.open(self.mark.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def done(self) -> None:
        """Record that the other database has everything."""
        self.is_done = True


@contextmanager
def handed_over(place: Place, target: str) -> Iterator[Handover]:
    """Keep servers from the file during the block, and after it if it ends as done.

    Raise CannotStart while a server runs, or when the file was handed over to another database.
    """
    file = File(place.typed, place.clock, True, "full")
    file.lock()
    try:
        handover = Handover(place, target)
        before = file.mark()
        # The file may have been named by another path then.
        if before and not before.read_text(encoding="utf-8").strip().endswith(handover.end):
            file.must_not_be_copied()
        unknown = False
        try:
            yield handover
        except OutcomeUnknown:
            unknown = True
            raise
        finally:
            if not (handover.is_done or unknown or before):
                handover.mark.unlink(missing_ok=True)
    finally:
        file.release()
