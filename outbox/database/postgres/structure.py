"""Set indexes, foreign keys and triggers of tables aside, and put them back."""

from __future__ import annotations

from collections.abc import Sequence

from outbox.database.postgres.hosts import Connection

# The indexes of primary and unique keys stay: what hangs on them would have to go too.
_INDEXES = """
select ci.relname as name, pg_get_indexdef(i.indexrelid) as made
from pg_index i join pg_class ci on ci.oid = i.indexrelid join pg_class ct on ct.oid = i.indrelid
where ct.relnamespace = current_schema()::regnamespace and ct.relname = any ($1)
  and not exists (select 1 from pg_constraint where conindid = i.indexrelid)
order by ci.relname
"""
_FOREIGN = """
select t.relname as "table", c.conname as name, pg_get_constraintdef(c.oid) as made
from pg_constraint c join pg_class t on t.oid = c.conrelid
where c.contype = 'f' and t.relnamespace = current_schema()::regnamespace and t.relname = any ($1)
order by c.conname
"""
_TRIGGERS = """
select distinct t.relname as "table" from pg_trigger g join pg_class t on t.oid = g.tgrelid
where not g.tgisinternal and t.relnamespace = current_schema()::regnamespace
  and t.relname = any ($1)
order by t.relname
"""


class Structure:
    """What slows loading down, or would count rows that are counted already."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._again: list[str] = []

    async def set_aside(self, tables: Sequence[str]) -> None:
        """Drop or disable it."""
        for row in await self._connection.fetch(_FOREIGN, tables):
            await self._connection.execute(
                f"alter table {row['table']} drop constraint {row['name']}"
            )
            self._again.append(
                f"alter table {row['table']} add constraint {row['name']} {row['made']}"
            )
        # A foreign key needs no index of ours, so the indexes can come back first.
        for row in await self._connection.fetch(_INDEXES, tables):
            await self._connection.execute(f"drop index {row['name']}")
            self._again.insert(0, row["made"])
        for row in await self._connection.fetch(_TRIGGERS, tables):
            await self._connection.execute(f"alter table {row['table']} disable trigger user")
            self._again.append(f"alter table {row['table']} enable trigger user")

    async def put_back(self) -> None:
        """Create or enable it again; a foreign key without its row fails here."""
        for statement in self._again:
            await self._connection.execute(statement)
