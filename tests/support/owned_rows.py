"""The rows of an owner by the declarations of ownership."""

from __future__ import annotations

from outbox.database.ownership import Common, Ownership, of_owner
from outbox.database.transaction import Tx


async def shares(tx: Tx, ownership: Ownership, owners: list[str]) -> dict[str, list[int]]:
    """Return of each table with owners how many rows each has, and at the end how many there are.

    Leave out the empty ones.
    """
    found: dict[str, list[int]] = {}
    for table, ways in ownership.items():
        if isinstance(ways, Common):
            continue
        condition = of_owner(ownership, table)
        counts = []
        for owner in owners:
            row = await tx.one(f"select count(*) as n from {table} where {condition}", owner)
            assert row is not None
            counts.append(int(row["n"]))
        row = await tx.one(f"select count(*) as n from {table}")
        assert row is not None
        if row["n"]:
            found[table] = [*counts, int(row["n"])]
    return found
