"""Measure what the databases of a PostgreSQL server take of its disk.

No statement tells how much of the disk is free, so its size is a setting of the installation.
"""

from __future__ import annotations

from dataclasses import dataclass

from outbox.database.transaction import Tx


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes: of this database, of all databases of the server, and of its write-ahead log.

    The log is None for a role without pg_monitor.
    """

    database: int
    databases: int
    wal: int | None


# A role may ask for the size of a database that it may connect to.
DATABASES = """
select pg_database_size(current_database()) as own, (
  select coalesce(sum(pg_database_size(oid)), 0) from pg_database
  where has_database_privilege(oid, 'connect')) as every,
  has_function_privilege('pg_ls_waldir()', 'execute') as may_list
"""
WAL = "select coalesce(sum(size), 0) as bytes from pg_ls_waldir()"


async def measure(tx: Tx) -> Sizes:
    """Return the sizes; on PostgreSQL alone."""
    row = await tx.one(DATABASES)
    assert row is not None
    wal = await tx.one(WAL) if row["may_list"] else None
    return Sizes(int(row["own"]), int(row["every"]), None if wal is None else int(wal["bytes"]))
