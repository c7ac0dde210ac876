"""The product with one rule broken: it trusts a COMMIT whoever ended its wait.

Run in place of `python -m gateway`, on PostgreSQL. What the server says when it ends the wait is
not heeded, and a transaction that stands on the primary counts as standing everywhere.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from gateway.__main__ import main

FATE: Any = import_module("outbox.database.postgres.fate")
UNITS: Any = import_module("outbox.database.postgres.units")


async def trusted(connection: Any) -> bool:
    """In the place of a COMMIT whose warnings are heeded."""
    await connection.execute("commit")
    return True


async def assumed(connection: Any) -> bool:
    """In the place of a later COMMIT that comes back."""
    return True


if __name__ == "__main__":
    UNITS.commit = FATE.commit = trusted
    FATE._confirmed = assumed
    sys.exit(main())
