"""The product on a database that may grow by only a few pages per batch (`PRAGMA max_page_count`).

Run in place of `python -m gateway`, on SQLite. Each batch waits a moment first, so that it gathers
concurrent writes; standard error reports how SQLite handles a batch.
"""

from __future__ import annotations

import json
import os
import sys
import time

from gateway.__main__ import main
from outbox.database.sqlite.steps import Job
from outbox.database.sqlite.writer import Writer

PAGES = 2
"""Growth of the file per batch; a record with long notes needs more."""
GATHER_SECONDS = 0.02

_run_batch = Writer.run_batch
_each_alone = Writer._each_alone


def tight_run_batch(self: Writer) -> list[Job]:
    """As the product's, after a pause and under a limit."""
    time.sleep(GATHER_SECONDS)
    connection = self._open()
    [pages] = connection.execute("pragma page_count").fetchone()
    connection.execute(f"pragma max_page_count = {pages + PAGES}")
    return _run_batch(self)


def told_each_alone(self: Writer, jobs: list[Job]) -> None:
    """As the product's; prints how many units it runs once more."""
    line = json.dumps({"event": "batch_ended_by_sqlite", "again": len(jobs)})
    os.write(2, line.encode() + b"\n")
    _each_alone(self, jobs)


if __name__ == "__main__":
    Writer.run_batch = tight_run_batch  # type: ignore[method-assign] # the limit is put here
    Writer._each_alone = told_each_alone  # type: ignore[method-assign] # and told here
    sys.exit(main())
