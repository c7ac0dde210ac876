"""The tables of a real schema, and the rows of an owner by the declarations of ownership."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from outbox.database.ownership import Common, Ownership, of_owner
from outbox.database.transaction import Tx

# Without virtual tables of SQLite and what stores their content.
COLUMNS = """
/*sqlite select t.name as "table", c.name as name from pragma_table_list t
join pragma_table_info(t.name) c
where t.schema = 'main' and t.type = 'table' and t.name not like 'sqlite_%'*/
/*postgres select c.relname as "table", a.attname as name from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')*/
"""
REFERENCES = """
/*sqlite select t.name as "table", f."from" as name, f."table" as parent, f."to" as key
from pragma_table_list t join pragma_foreign_key_list(t.name) f where t.schema = 'main'*/
/*postgres select c.relname as "table", a.attname as name, p.relname as parent, k.attname as key
from pg_constraint f join pg_class c on c.oid = f.conrelid join pg_class p on p.oid = f.confrelid
join pg_attribute a on a.attrelid = c.oid and a.attnum = f.conkey[1]
join pg_attribute k on k.attrelid = p.oid and k.attnum = f.confkey[1]
where f.contype = 'f' and c.relnamespace = current_schema()::regnamespace*/
"""


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of each table, and its foreign keys: table, column, parent, key."""

    columns: Mapping[str, frozenset[str]]
    references: frozenset[tuple[str, str, str, str]]


async def schema(tx: Tx) -> Schema:
    """Read which tables there are."""
    columns: dict[str, set[str]] = {}
    for row in await tx.all(COLUMNS):
        columns.setdefault(row["table"], set()).add(row["name"])
    return Schema(
        {table: frozenset(names) for table, names in columns.items()},
        frozenset(
            (row["table"], row["name"], row["parent"], row["key"])
            for row in await tx.all(REFERENCES)
        ),
    )


def undeclared(ownership: Ownership, found: Schema) -> set[str]:
    """Return the tables of which nothing is declared."""
    return found.columns.keys() - ownership.keys()


def missing_columns(ownership: Ownership, found: Schema) -> set[tuple[str, str]]:
    """Return the declared columns, of tables and of their parents, that do not exist."""
    declared = {
        place
        for table, ways in ownership.items()
        if not isinstance(ways, Common)
        for way in ways
        for place in ((table, way.column), (way.parent or table, way.key if way.parent else ""))
        if place[1]
    }
    return {(t, c) for t, c in declared if c not in found.columns.get(t, frozenset())}


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
