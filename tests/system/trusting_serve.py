"""The product with one rule broken: it trusts a COMMIT however its wait ended.

Run in place of `python -m gateway`, on PostgreSQL. It ignores the server's warning about the end of
the wait, and a transaction on the primary counts as stored everywhere.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from gateway.__main__ import main

FATE: Any = import_module("outbox.database.postgres.commit_outcome")
UNITS: Any = import_module("outbox.database.postgres.units")


async def trusted(connection: Any) -> bool:
    """Replaces a COMMIT that checks for warnings."""
    await connection.execute("commit")
    return True


async def assumed(connection: Any) -> bool:
    """Replaces the check by a later COMMIT."""
    return True


if __name__ == "__main__":
    UNITS.commit = FATE.commit = trusted
    FATE._confirmed = assumed
    sys.exit(main())
