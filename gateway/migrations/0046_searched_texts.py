"""Adds the column by which a search finds activities and reviews, and fills it in.

Their texts are long, so the column is in no index: a search reads the rows of the list.
"""

from gateway.records.values.folding import fold_all
from outbox.database.transaction import Tx

BATCH = 500
_TEXTS = {"activities": "description", "reviews": "text"}
# The tables that are left to do, each with the last id that is done; the last step drops it.
_WORK = """
create table unsearched (
  kind text /*postgres collate "C"*/ primary key,
  place text /*postgres collate "C"*/ not null
)
"""
_THERE = """
/*sqlite select count(*) as n from sqlite_master where name = 'unsearched'*/
/*postgres select count(*) as n from pg_tables
  where tablename = 'unsearched' and schemaname = current_schema()*/
"""


async def step(tx: Tx) -> bool:
    """Fill in one batch; return whether more may be left."""
    there = await tx.one(_THERE)
    if there is None or not there["n"]:
        await tx.run(_WORK)
        for kind in _TEXTS:
            await tx.run(f'alter table {kind} add column folded text /*postgres collate "C"*/')
            await tx.run("insert into unsearched (kind, place) values ($1, '')", kind)
    left = await tx.one("select kind, place from unsearched order by kind limit 1")
    if left is None:
        await tx.run("drop table unsearched")
        return False
    kind, text = left["kind"], _TEXTS[left["kind"]]
    rows = await tx.all(
        f"select id, {text} as text from {kind} where id > $1 order by id limit $2",
        left["place"], BATCH,
    )  # fmt: skip
    if not rows:
        await tx.run("delete from unsearched where kind = $1", kind)
        return True
    values = [(fold_all([row["text"]]), row["id"]) for row in rows]
    await tx.many(f"update {kind} set folded = $1 where id = $2", values)
    await tx.run("update unsearched set place = $2 where kind = $1", kind, rows[-1]["id"])
    return True
