"""Adds the columns by which a search finds records, fills them in, and puts them into the indexes.

`folded` is what a search finds by its words, `digits` by phones and documents; see
gateway.records.searching.
"""

from typing import Any

from gateway.records.searching import digits_of
from gateway.records.values.folding import fold_all
from outbox.database.transaction import Row, Tx

BATCH = 500
# The table → the columns of `folded` where it is new, those of `digits`, what else the index has.
_TABLES: dict[str, tuple[tuple[str, ...], tuple[tuple[str, ...], ...], str]] = {
    "companies": ((), (("phone_e164", "phone"), ("cnpj_normal", "cnpj")), ""),
    "contacts": ((), (("phone_e164", "phone"),), ""),
    "customers": ((), (("phone",),), ""),
    "deals": (("title",), (), ""),
    "invoices": (("number",), (), "status, due_at, due_day, total, "),
    "orders": ((), (("phone",), ("document",)), "status, "),
    "quotes": (("number",), (), "status, valid_until, valid_day, "),
    "tasks": (("title",), (), ""),
}
_THERE = """
/*sqlite select count(*) as n from sqlite_master where name = 'unfound'*/
/*postgres select count(*) as n from pg_tables
  where tablename = 'unfound' and schemaname = current_schema()*/
"""
# The tables that are left to do, each with the last id that is done; the last step drops it.
_WORK = """
create table unfound (
  kind text /*postgres collate "C"*/ primary key,
  place text /*postgres collate "C"*/ not null
)
"""


async def step(tx: Tx) -> bool:
    """Fill in one batch and make the indexes before it; return whether more may be left."""
    there = await tx.one(_THERE)
    if there is None or not there["n"]:
        await _begin(tx)
    filled = False
    while not filled:
        left = await tx.one("select kind, place from unfound order by kind limit 1")
        if left is None:
            await tx.run("drop table unfound")
            return False
        filled = await _fill(tx, left["kind"], left["place"])
        if not filled:
            await _index(tx, left["kind"])
            await tx.run("delete from unfound where kind = $1", left["kind"])
    return True


async def _fill(tx: Tx, kind: str, place: str) -> bool:
    """Fill in one batch; return whether there was one."""
    rows = await tx.all(f"select * from {kind} where id > $1 order by id limit $2", place, BATCH)
    if not rows:
        return False
    values = [(*_values(kind, row), row["id"]) for row in rows]
    sets = ", ".join(f"{name} = ${n}" for n, name in enumerate(_new(kind), start=1))
    await tx.many(f"update {kind} set {sets} where id = ${len(_new(kind)) + 1}", values)
    await tx.run("update unfound set place = $2 where kind = $1", kind, rows[-1]["id"])
    return True


def _new(kind: str) -> list[str]:
    folded, digits, _ = _TABLES[kind]
    return [*(["folded"] if folded else []), *(["digits"] if digits else [])]


def _values(kind: str, row: Row) -> list[Any]:
    folded, digits, _ = _TABLES[kind]
    values = [fold_all([row[one] for one in folded])] if folded else []
    if digits:
        numbers = (next((row[one] for one in each if row[one]), None) for each in digits)
        values.append(digits_of(numbers))
    return values


async def _begin(tx: Tx) -> None:
    await tx.run(_WORK)
    for kind in _TABLES:
        for name in _new(kind):
            await tx.run(f'alter table {kind} add column {name} text /*postgres collate "C"*/')
        await tx.run("insert into unfound (kind, place) values ($1, '')", kind)


async def _index(tx: Tx, kind: str) -> None:
    """Replace the index of the newest records by one that a search reads alone."""
    _, digits, more = _TABLES[kind]
    columns = f"owner_id, created_at desc, id desc, {more}folded{', digits' if digits else ''}"
    await tx.run(f"create index {kind}_found on {kind} ({columns})")
    await tx.run(f"drop index {kind}_newest")
