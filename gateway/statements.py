"""SQL text generated from a declaration, once per shape; values always travel as parameters.

Only names that a declaration spells out are put into the text.
"""

from functools import lru_cache

from gateway.resource import Resource

TALLY = """
insert into tallies (owner_id, kind, slot, n) values ($1, $2, $3, $4)
on conflict (owner_id, kind, slot) do update set n = tallies.n + excluded.n
"""
TOTAL = """
select cast(coalesce(sum(n), 0) as bigint) as n from tallies where owner_id = $1 and kind = $2
"""


@lru_cache(maxsize=256)
def select_one(resource: Resource, *, lock: bool) -> str:
    """One record by id ($1); `lock` keeps other writers away from it until the end."""
    text = f"select {', '.join(resource.columns)} from {resource.table} where id = $1"
    return f"{text} /*postgres for update*/" if lock else text


@lru_cache(maxsize=256)
def insert(resource: Resource) -> str:
    """A new record; parameters are `written(resource)` in order."""
    columns = written(resource)
    places = ", ".join(f"${i}" for i in range(1, len(columns) + 1))
    return f"insert into {resource.table} ({', '.join(columns)}) values ({places})"


@lru_cache(maxsize=256)
def written(resource: Resource) -> tuple[str, ...]:
    """All columns of a record: what is read, and what only search and sorting use."""
    return (
        *resource.columns,
        *(["folded"] if resource.search else []),
        *(["sort_name"] if resource.folded_sort else []),
    )


@lru_cache(maxsize=1024)
def update(resource: Resource, columns: tuple[str, ...]) -> str:
    """Set `columns` ($3 …) of the record $1 at the time $2, and count its version up."""
    sets = "".join(f", {column} = ${i}" for i, column in enumerate(columns, start=3))
    return f"update {resource.table} set version = version + 1, updated_at = $2{sets} where id = $1"


@lru_cache(maxsize=1024)
def page(resource: Resource, where: str, order: str, *, size: int, offset: int, late: bool) -> str:
    """One page; `size` and `offset` are the numbers of the parameters that hold them.

    `late` finds the ids in an index first and only then reads the records that are shown: what is
    skipped or searched through is never read. SQLite gives the rows as one JSON text: its driver
    hands the interpreter over at every row, and then waits for it behind busy threads.
    """
    bounds = f"limit ${size} offset ${offset}"
    columns = ", ".join(resource.columns)
    if late:
        where = f"id in (select id from {resource.table} where {where} order by {order} {bounds})"
        bounds = ""
    return (
        f"/*sqlite select json_group_array(json_array({columns})) from (*/"
        f"select {columns} from {resource.table} where {where} order by {order} {bounds}"
        "/*sqlite )*/"
    )


@lru_cache(maxsize=1024)
def count(resource: Resource, where: str) -> str:
    return f"select count(*) as n from {resource.table} where {where}"


@lru_cache(maxsize=256)
def owned(table: str, how_many: int) -> str:
    """Which of the ids $2 … belong to the owner $1, kept from being deleted until the end."""
    places = ", ".join(f"${i}" for i in range(2, how_many + 2))
    # Locks are taken in the order of ids, so that two writers cannot wait for each other.
    return (
        f"select id from {table} where owner_id = $1 and id in ({places}) order by id"
        " /*postgres for key share*/"
    )


@lru_cache(maxsize=64)
def list_items(table: str) -> str:
    """Make a record findable by an item of one of its lists (Field.listed_in)."""
    return f"insert into {table} (owner_id, value, record_id) values ($1, $2, $3)"


@lru_cache(maxsize=64)
def claim(table: str) -> str:
    """Take a value for a record (Field.unique_in); no row when another has it."""
    return f"{list_items(table)} on conflict (owner_id, value) do nothing"


@lru_cache(maxsize=64)
def unlist_items(table: str) -> str:
    return f"delete from {table} where record_id = $1"


@lru_cache(maxsize=64)
def unlist_everywhere(table: str) -> str:
    return f"delete from {table} where owner_id = $1 and value = $2"


@lru_cache(maxsize=64)
def delete(table: str) -> str:
    return f"delete from {table} where id = $1"


@lru_cache(maxsize=64)
def remove_of(table: str, column: str) -> str:
    """Remove the records that belong to the record $2; gives their ids."""
    return f"delete from {table} where owner_id = $1 and {column} = $2 returning id"


@lru_cache(maxsize=64)
def unset(table: str, column: str) -> str:
    """Null the column of the records that hold the id $2; their ETag changes."""
    return (
        f"update {table} set {column} = null, version = version + 1, updated_at = $3"
        f" where owner_id = $1 and {column} = $2"
    )


@lru_cache(maxsize=64)
def drop(table: str, column: str, listed_in: str) -> str:
    """Take the id $2 out of JSON lists such as ["a","b"], in which it stands at most once."""
    rest = column
    # With the comma before it, else with the one after it, else alone.
    for before, after in ((",", ""), ("", ","), ("", "")):
        rest = f"replace({rest}, '{before}\"' || $2 || '\"{after}', '')"
    return (
        f"update {table} set {column} = {rest}, version = version + 1, updated_at = $3"
        f" where id in (select record_id from {listed_in} where owner_id = $1 and value = $2)"
    )
