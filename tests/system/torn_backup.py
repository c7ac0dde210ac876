"""The product with one rule broken: a backup reads each table on a snapshot of its own.

Run in place of `python -m gateway`, for `backup` beside a server that writes.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from gateway.__main__ import main

SQLITE: Any = import_module("outbox.database.sqlite.snapshot")
POSTGRES: Any = import_module("outbox.database.postgres.snapshot")

if __name__ == "__main__":
    assert SQLITE.BEGIN == "begin"
    SQLITE.BEGIN = "select 1"
    assert "repeatable read" in POSTGRES.READ
    POSTGRES.READ = POSTGRES.READ.replace("repeatable read", "read committed")
    sys.exit(main())
