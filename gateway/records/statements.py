"""Generates SQL text from a declaration, once per shape; values are always parameters.

The text contains only names from declarations. It is one module because the statements of a record
have to agree in their columns and their order.
"""

from functools import lru_cache

from gateway.records import settled_rows
from gateway.records.derived import varying
from gateway.records.resource import CHANGED, Cascade, Drop, Resource, Unique
from outbox.database.sql import IDS
from outbox.database.transaction import Insert

BESIDE = 4_096
"""Most bytes of long texts of a record that a page reads together with others."""
TALLY = Insert(
    "tallies",
    ("owner_id", "kind", "slot", "n"),
    "on conflict (owner_id, kind, slot) do update set n = tallies.n + excluded.n",
    sums=True,
    referred=False,
)


@lru_cache(maxsize=64)
def total(resource: Resource) -> str:
    """Return the query for the number of records of the owner $1, by the totals of the kind $2."""
    hidden = settled_rows.hidden(resource)
    less = f" - ({hidden})" if hidden else ""
    return (
        f"select cast(coalesce(sum(n), 0){less} as bigint) as n from tallies"
        " where owner_id = $1 and kind = $2"
    )


@lru_cache(maxsize=256)
def select_one(resource: Resource, *, lock: bool) -> str:
    """Return the query for a record by id ($1); `lock` locks it until the transaction ends."""
    columns, seen = settled_rows.columns(resource), settled_rows.seen(resource)
    text = f"select {columns} from {resource.table} where id = $1{seen}"
    return f"{text} /*postgres for update*/" if lock else text


@lru_cache(maxsize=64)
def select_some(resource: Resource) -> str:
    """Return the query for records by their ids, a JSON array in $1."""
    return (
        f"select {settled_rows.columns(resource)} from {resource.table}"
        f" where id in {IDS}{settled_rows.seen(resource)}"
    )


@lru_cache(maxsize=256)
def insert(resource: Resource) -> Insert:
    """Return the INSERT of records; its values are `written(resource)` in order."""
    return Insert(resource.table, written(resource))


@lru_cache(maxsize=256)
def written(resource: Resource) -> tuple[str, ...]:
    """Return all columns of a record, including those that only search and sorting use."""
    return (
        *resource.columns,
        *(["folded"] if resource.search else []),
        *(["digits"] if resource.numbers else []),
        *(["sort_name"] if resource.folded_sort else []),
    )


@lru_cache(maxsize=1024)
def update(resource: Resource, columns: tuple[str, ...]) -> str:
    """Return the UPDATE of `columns` ($4 …) of the record $1 at the time $2 to the version $3."""
    sets = "".join(f", {column} = ${i}" for i, column in enumerate(columns, start=4))
    return f"update {resource.table} set updated_at = $2, version = $3{sets} where id = $1"


def changed_at(place: str) -> str:
    """Return the assignment of the time of a change at `place`, which never goes back.

    A transaction that waited is older than the one that it waited for.
    """
    return f"updated_at = case when {CHANGED} > {place} then {CHANGED} else {place} end"


@lru_cache(maxsize=1024)
def page(
    resource: Resource,
    where: str,
    order: str,
    *,
    size: int,
    offset: int,
    late: bool,
    keys: tuple[str, ...] = (),
) -> str:
    """Return the query for a page; `size` and `offset` are the numbers of their parameters.

    After its columns each row has the values of `keys`, which are SQL, and a flag: its long texts
    are left out, because they have more than BESIDE bytes.

    `late` finds the ids in an index first and then reads only the records of the page. SQLite
    returns the rows as one JSON text, because its driver releases the interpreter lock at every row
    and then waits behind busy threads to get it back.
    """
    bounds = f"limit ${size} offset ${offset}"
    where += settled_rows.seen(resource)
    if late:
        where = f"id in (select id from {resource.table} where {where} order by {order} {bounds})"
        bounds = ""
    # The outer query leaves the texts out, so that each row's length is computed once.
    long = {c: f"case when not is_long then {c} end" for c in resource.long}
    named = {f"key_{number}": key for number, key in enumerate(keys)}
    shown = [*(long.get(c, c) for c in resource.columns), *named, "is_long"]
    values = "".join(f" {key} as {name}," for name, key in named.items())
    return (
        f"select /*sqlite json_group_array(json_array(*/ {', '.join(shown)} /*sqlite ))*/"
        f" from (select {settled_rows.columns(resource)},{values}"
        f" {text_bytes(resource)} > {BESIDE} as is_long"
        f" from {resource.table} where {where} order by {order} {bounds}) as page"
    )


@lru_cache(maxsize=64)
def edition(resource: Resource, order: str) -> str:
    """Return the query for the owner's ($1) total of the kind $2, and of the first $3 records.

    The records are one JSON text: a list of values in the order of `edition_columns` each.
    """
    columns = edition_columns(resource)
    selected = ", ".join(settled_rows.expressions(resource)[column] for column in columns)
    listed = ", ".join(columns)
    return (
        f"select ({total(resource)}) as n, /*sqlite json_group_array(json_array({listed}))*/"
        f" /*postgres cast(json_agg(json_build_array({listed})) as text)*/ as records"
        f" from (select {selected} from {resource.table}"
        f" where owner_id = $1{settled_rows.seen(resource)} order by {order} limit $3) as page"
    )


@lru_cache(maxsize=64)
def edition_columns(resource: Resource) -> tuple[str, ...]:
    """Return the columns that tell whether the JSON form of a record has changed."""
    derived = (column for d in varying(resource.derived) for column in d.columns)
    return tuple(dict.fromkeys(("id", "version", "updated_at", *derived)))


@lru_cache(maxsize=1024)
def ids(resource: Resource, where: str, order: str, *, size: int, offset: int) -> str:
    """Return the query for the ids of the records that `page` selects."""
    bounds = f"limit ${size} offset ${offset}"
    where += settled_rows.seen(resource)
    return f"select id from {resource.table} where {where} order by {order} {bounds}"


def text_bytes(resource: Resource) -> str:
    """Return an expression for the bytes of a record's long texts."""
    sizes = (
        f"coalesce(/*sqlite length(cast({c} as blob))*/ /*postgres octet_length({c})*/, 0)"
        for c in resource.long
    )
    return f"({' + '.join(sizes) or 0})"


@lru_cache(maxsize=1024)
def count(resource: Resource, where: str) -> str:
    return f"select count(*) as n from {resource.table} where {where}{settled_rows.seen(resource)}"


@lru_cache(maxsize=1024)
def count_to(resource: Resource, where: str, most: int) -> str:
    """Return the query for the number of records, which stops at `most`."""
    where += settled_rows.seen(resource)
    return (
        "select count(*) as n from"
        f" (select 1 as one from {resource.table} where {where} limit {most}) as those"
    )


@lru_cache(maxsize=256)
def owned(table: str, how_many: int) -> str:
    """Return the query for the ids among $2 … of the owner $1, locked against deletes."""
    places = ", ".join(f"${i}" for i in range(2, how_many + 2))
    # By key, not among all of the owner; the order of ids keeps two writers from a deadlock.
    return (
        f"select id from {table} where /*sqlite +*/ owner_id = $1 and id in ({places}) order by id"
        " /*postgres for key share*/"
    )


@lru_cache(maxsize=64)
def list_items(table: str) -> Insert:
    """Return the INSERT that indexes a record by an item of one of its lists (Field.listed_in)."""
    return Insert(table, ("owner_id", "value", "record_id"), refers=True)


@lru_cache(maxsize=64)
def claim(unique: Unique) -> str:
    """Return the INSERT that claims a unique value; it inserts no row when the value is in use."""
    scope = filter(None, (unique.scope,))
    key = ", ".join((*scope, "value"))
    places = "$1, $2" if unique.scope == "" else "$1, $2, $3"
    return (
        f"insert into {unique.table} ({key}, record_id) values ({places})"
        f" on conflict ({key}) do nothing"
    )


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
    """Return the DELETE of the records that belong to the record $2; it returns their ids."""
    return f"delete from {table} where owner_id = $1 and {column} = $2 returning id"


@lru_cache(maxsize=64)
def unset(table: str, column: str, also: tuple[str, ...] = ()) -> str:
    """Return the UPDATE that nulls the columns in records with the id $2; their ETag changes."""
    return (
        f"update {table} set {_nulls(column, *also)}, version = version + 1, {changed_at('$3')}"
        f" where owner_id = $1 and {column} = $2"
    )


def _nulls(*columns: str) -> str:
    return ", ".join(f"{column} = null" for column in columns)


@lru_cache(maxsize=64)
def drop(table: str, column: str, listed_in: str) -> str:
    """Return the UPDATE that removes the id $2 from JSON lists like ["a","b"] without repeats."""
    return (
        f"update {table} set {column} = {_without(column)}, version = version + 1,"
        f" {changed_at('$3')}"
        f" where id in (select record_id from {listed_in} where owner_id = $1 and value = $2)"
    )


def _without(column: str) -> str:
    rest = column
    # Remove the item together with the comma before it or after it, if there is one.
    for before, after in ((",", ""), ("", ","), ("", "")):
        rest = f"replace({rest}, '{before}\"' || $2 || '\"{after}', '')"
    return rest


@lru_cache(maxsize=64)
def dependants(resource: Resource) -> str:
    """Return the query that counts dependants of the record $2 of the owner $1, $3 of each kind."""
    each = " union all ".join(
        f"select * from (select 1 as one {_pointing(cascade)} limit $3) as of_{i}"
        for i, cascade in enumerate(resource.cascades)
    )
    return f"select count(*) as n from ({each}) as found"


@lru_cache(maxsize=64)
def some_dependants(cascade: Cascade) -> str:
    """Return the query for up to $3 ids of dependants of the record $2 of the owner $1."""
    column = "record_id" if isinstance(cascade, Drop) else "id"
    # The lock precedes the write, so that the write sees the current state.
    return f"select {column} {_pointing(cascade)} limit $3 /*postgres for update*/"


@lru_cache(maxsize=64)
def count_dependants(cascade: Cascade) -> str:
    """Return the query for the number of dependants of the record $2, up to $3."""
    return f"select count(*) as n from (select 1 as one {_pointing(cascade)} limit $3) as those"


def _pointing(cascade: Cascade) -> str:
    if isinstance(cascade, Drop):
        return f"from {cascade.listed_in} where owner_id = $1 and value = $2"
    return f"from {cascade.table} where owner_id = $1 and {cascade.column} = $2"


# The ids $1 come from `some_dependants`. A version grows by two: see gateway.records.settled_rows.


@lru_cache(maxsize=64)
def unset_these(table: str, column: str, also: tuple[str, ...] = ()) -> str:
    """Return the UPDATE that nulls the columns where the first still has the id $2."""
    return (
        f"update {table} set {_nulls(column, *also)}, version = version + 2, {changed_at('$3')}"
        f" where id in {IDS} and {column} = $2"
    )


@lru_cache(maxsize=64)
def drop_these(table: str, column: str) -> str:
    """Return the UPDATE that removes the id $2 from the JSON lists that still have it."""
    return (
        f"update {table} set {column} = {_without(column)}, version = version + 2,"
        f" {changed_at('$3')}"
        f" where id in {IDS} and {column} like '%\"' || $2 || '\"%'"
    )


@lru_cache(maxsize=64)
def unlist_these(table: str) -> str:
    """Return the DELETE of the index rows of the records for the item $3 of the owner $2."""
    return f"delete from {table} where owner_id = $2 and value = $3 and record_id in {IDS}"


@lru_cache(maxsize=64)
def remove_these(table: str, column: str) -> str:
    """Return the DELETE of the records that belong to the record $2; it returns their ids."""
    return f"delete from {table} where id in {IDS} and {column} = $2 returning id"
