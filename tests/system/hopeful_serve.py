"""The product with a broken rule: a COMMIT whose flush failed counts as done.

Run in place of `python -m gateway`. SQLite has rolled the transaction back, and its units are
answered as if it had not.
"""

from __future__ import annotations

import sqlite3
import sys

from gateway.__main__ import main
from outbox.database.sqlite.steps import Job
from outbox.database.sqlite.writer import Writer


def hope(self: Writer, connection: sqlite3.Connection, jobs: list[Job]) -> bool:
    """Commit, and forget a failure."""
    try:
        connection.execute("commit")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("rollback")
    return False


if __name__ == "__main__":
    Writer._commit = hope  # type: ignore[method-assign] # the rule that is broken
    sys.exit(main())
