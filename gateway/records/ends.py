"""How a record reads while a reference of it is still to be ended: as if that had been done.

A record that goes and has many dependants is noted in `pending_ends`; records.dependants settles
them later, in batches. What each statement here leaves out costs one look into that table, which
is nearly always empty.

A version counts one for each reference that reads as ended, and settling adds two: with the end
the record also gets its time of change, so no two states of it share a version.
"""

from functools import lru_cache

from gateway.records.resource import Field, Resource

# The same for every row, so it is asked once a statement.
_ANY = "exists (select 1 from pending_ends)"


def gone(owner: str, record_id: str) -> str:
    """Whether this record is gone and has dependants left; the arguments are SQL."""
    return (
        "exists (select 1 from pending_ends e"
        f" where e.owner_id = {owner} and e.record_id = {record_id})"
    )


@lru_cache(maxsize=64)
def columns(resource: Resource, long: str = "") -> str:
    """The columns of a record for SELECT, with what has ended left out.

    Where the condition `long` holds, the long texts of the record are left out as well.
    """
    shown = {column: column for column in resource.columns}
    if long:
        shown |= {c: f"case when not {long} then {c} end as {c}" for c in resource.long}
    ended = []
    for field in resource.ending:
        value = f"{resource.table}.{field.column}"
        if field.listed_in:
            left, count = _list(resource, field)
        else:
            is_gone = gone(f"{resource.table}.owner_id", value)
            left = f"case when {is_gone} then null else {value} end"
            count = f"cast({is_gone} as int)"
        shown[field.column] = f"case when {_ANY} then {left} else {value} end as {field.column}"
        ended.append(count)
    if ended:
        shown["version"] = (
            f"{resource.table}.version + case when {_ANY} then {' + '.join(ended)} else 0 end"
            " as version"
        )
    return ", ".join(shown.values())


def _list(resource: Resource, field: Field) -> tuple[str, str]:
    """A JSON list of ids without those that have ended, and how many these are."""
    kept = f"{resource.table}.{field.column}"
    items = (
        f"/*sqlite json_each({kept}) as i*/"
        f" /*postgres json_array_elements_text(cast({kept} as json))"
        " with ordinality as i (value, n)*/"
    )
    is_gone = gone(f"{resource.table}.owner_id", "i.value")
    # In the very form in which nested lists are kept.
    left = (
        "/*sqlite json_group_array(i.value)*/ /*postgres"
        """ coalesce('["' || string_agg(i.value, '","' order by i.n) || '"]', '[]')*/"""
    )
    return (
        f"(select {left} from {items} where not {is_gone})",
        f"(select count(*) from {items} where {is_gone})",
    )


@lru_cache(maxsize=64)
def seen(resource: Resource, name: str = "") -> str:
    """A condition, with ` and ` before it: the record does not go with one that is gone.

    Empty where records of this kind never do. `name` is what the statement calls the table.
    """
    found = ""
    table = name or resource.table
    for field in resource.belongs:
        # Joined by `or`, so that PostgreSQL keeps to the index of the page instead of joining.
        is_gone = gone(f"{table}.owner_id", f"{table}.{field.column}")
        found += f" and (not {_ANY} or not {is_gone})"
    return found


@lru_cache(maxsize=64)
def hidden(resource: Resource) -> str:
    """How many records of the owner $1 are not `seen`, as an expression; empty as there."""
    counts = [
        "(select coalesce(sum(n), 0) from (select (select count(*)"
        f" from {resource.table} d where d.owner_id = e.owner_id"
        f" and d.{field.column} = e.record_id) as n"
        " from pending_ends e where e.owner_id = $1) as hidden)"
        for field in resource.belongs
    ]
    return " + ".join(counts)
