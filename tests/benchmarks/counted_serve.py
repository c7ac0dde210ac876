"""The product as a process that also counts the statements it sends to its database.

Run in place of `python -m gateway`. At its end it writes the count to the file named by STATEMENTS.
BEGIN and COMMIT count, and so do the statements of its duties and its lease.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from gateway.__main__ import main
from outbox.database.postgres.hosts import Hosts
from outbox.database.sqlite.file import File

FILE = "STATEMENTS"
# An append is atomic in any thread; adding to a number is not.
SENT: list[None] = []


async def connect(hosts: Hosts, *words: object, **options: Any) -> Any:
    """Replace Hosts.connect: the same connection, with a listener."""
    connection = await CONNECT(hosts, *words, **options)
    connection.add_query_logger(lambda _: SENT.append(None))
    return connection


def opened(file: File, writable: bool = True) -> sqlite3.Connection:
    """Replace File.connect: the same connection, with a listener."""
    connection = OPENED(file, writable)
    connection.set_trace_callback(lambda _: SENT.append(None))
    return connection


CONNECT = Hosts.connect
OPENED = File.connect


def counted() -> int:
    """Run the command line to its end; return its exit status."""
    vars(import_module("outbox.database.postgres.hosts"))["Hosts"].connect = connect
    vars(import_module("outbox.database.sqlite.file"))["File"].connect = opened
    status = main()
    Path(os.environ[FILE]).write_text(str(len(SENT)), encoding="ascii")
    return status


if __name__ == "__main__":
    sys.exit(counted())
