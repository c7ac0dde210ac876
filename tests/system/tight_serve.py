"""The product on a database that may grow by only a few pages per batch (`PRAGMA max_page_count`).

Run in place of `python -m gateway`, on SQLite. Each batch waits a moment first, so that concurrent
writes are gathered; standard error reports how SQLite handles a batch.
"""

from __future__ import annotations

import json
import os
import sys

from gateway.__main__ import main
from outbox.database.sqlite.steps import Job
from outbox.database.sqlite.write_queue import WriteQueue
from outbox.database.sqlite.writer import Writer

PAGES = 2
"""Growth of the file per batch; a record with long notes needs more."""
GATHER_SECONDS = 0.02

_step = Writer.step
_end = Writer.end
_each_alone = Writer._each_alone


def late_call_soon(self: WriteQueue) -> None:
    """As the product's, after a pause before each batch."""
    if self._writer is not None and not self._called:
        self._called = True
        pause = 0.0 if self._writer.has_batch else GATHER_SECONDS
        self._loop.call_later(pause, self._turn)


def tight_step(self: Writer, until: float) -> bool:
    """As the product's, under a limit."""
    _limit(self)
    return _step(self, until)


def tight_end(self: Writer) -> list[Job]:
    """As the product's, under a limit."""
    _limit(self)
    return _end(self)


def _limit(writer: Writer) -> None:
    if not writer.has_batch:
        connection = writer._open()
        [pages] = connection.execute("pragma page_count").fetchone()
        connection.execute(f"pragma max_page_count = {pages + PAGES}")


def told_each_alone(self: Writer, jobs: list[Job]) -> None:
    """As the product's; prints how many units it runs once more."""
    line = json.dumps({"event": "batch_ended_by_sqlite", "again": len(jobs)})
    os.write(2, line.encode() + b"\n")
    _each_alone(self, jobs)


if __name__ == "__main__":
    WriteQueue._call_soon = late_call_soon  # type: ignore[method-assign] # batches are gathered here
    Writer.step = tight_step  # type: ignore[method-assign] # the limit is put here
    Writer.end = tight_end  # type: ignore[method-assign] # and here
    Writer._each_alone = told_each_alone  # type: ignore[method-assign] # and told here
    sys.exit(main())
