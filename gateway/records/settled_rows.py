"""Generates SQL that reads records as if all dependants of deleted records were settled.

A delete with many dependants writes a row to `pending_ends`; records.cascades settles them later
in batches. Each statement here costs one lookup in that table, which is nearly always empty.

Each reference that reads as removed adds one to the version, and settling it adds two: settling
also sets the time of the change, so no two states of a record share a version.
"""

from collections.abc import Mapping
from functools import lru_cache

from gateway.records.resource import Field, Resource

# It does not depend on the row, so a statement evaluates it once.
_ANY = "exists (select 1 from pending_ends)"


def gone(owner: str, record_id: str) -> str:
    """Return the condition that this record is deleted with dependants left; arguments are SQL."""
    # Without the offset, PostgreSQL may read those of all owners, once for the statement.
    return (
        "exists (select 1 from pending_ends e"
        f" where e.owner_id = {owner} and e.record_id = {record_id} limit 1 offset 0)"
    )


@lru_cache(maxsize=64)
def columns(resource: Resource) -> str:
    """Return the columns of a record for SELECT, without references to deleted records."""
    return ", ".join(expressions(resource).values())


@lru_cache(maxsize=64)
def expressions(resource: Resource) -> Mapping[str, str]:
    """Return what `columns` selects, by column."""
    shown = {column: column for column in resource.columns}
    ended = []
    for field in resource.ending:
        value = f"{resource.table}.{field.column}"
        if field.listed_in:
            rest, count = _list(resource, field)
        else:
            is_gone = gone(f"{resource.table}.owner_id", value)
            rest = f"case when {is_gone} then null else {value} end"
            count = f"cast({is_gone} as int)"
            for column in field.reference.also if field.reference else ():
                stored = f"{resource.table}.{column}"
                shown[column] = (
                    f"case when {_ANY} then case when {is_gone} then null else {stored} end"
                    f" else {stored} end as {column}"
                )
        shown[field.column] = f"case when {_ANY} then {rest} else {value} end as {field.column}"
        ended.append(count)
    if ended:
        shown["version"] = (
            f"{resource.table}.version + case when {_ANY} then {' + '.join(ended)} else 0 end"
            " as version"
        )
    return shown


def _list(resource: Resource, field: Field) -> tuple[str, str]:
    """Return SQL for a JSON list of ids without deleted ones, and for the count of deleted ones."""
    stored = f"{resource.table}.{field.column}"
    items = (
        f"/*sqlite json_each({stored}) as i*/"
        f" /*postgres json_array_elements_text(cast({stored} as json))"
        " with ordinality as i (value, n)*/"
    )
    is_gone = gone(f"{resource.table}.owner_id", "i.value")
    # The text must equal the stored form of a list, byte for byte.
    rest = (
        "/*sqlite json_group_array(i.value)*/ /*postgres"
        """ coalesce('["' || string_agg(i.value, '","' order by i.n) || '"]', '[]')*/"""
    )
    return (
        f"(select {rest} from {items} where not {is_gone})",
        f"(select count(*) from {items} where {is_gone})",
    )


@lru_cache(maxsize=64)
def seen(resource: Resource, name: str = "") -> str:
    """Return a condition with a leading ` and `: no deleted record takes this one with it.

    It is empty for a kind that is never deleted with another. `name` is the table's alias.
    """
    condition = ""
    table = name or resource.table
    for field in resource.belongs:
        # With `or` PostgreSQL uses the index of the page instead of a join.
        is_gone = gone(f"{table}.owner_id", f"{table}.{field.column}")
        condition += f" and (not {_ANY} or not {is_gone})"
    return condition


@lru_cache(maxsize=64)
def hidden(resource: Resource) -> str:
    """Return an expression that counts the owner's ($1) records that `seen` excludes, or ''."""
    counts = []
    others = ""
    for field in resource.belongs:
        counts.append(
            "(select coalesce(sum(n), 0) from (select (select count(*)"
            f" from {resource.table} d where d.owner_id = e.owner_id"
            f" and d.{field.column} = e.record_id{others}) as n"
            " from pending_ends e where e.owner_id = $1) as hidden)"
        )
        # Count a record that two deleted records take with them once.
        others += f" and not {gone('d.owner_id', f'd.{field.column}')}"
    return " + ".join(counts)
