"""Reads the records of a list as the rows of a CSV file: a header with API names, then the cells.

A file can be imported again: see gateway.records.values.csv_cells for how each value is written.
"""

import asyncio
import csv
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from functools import lru_cache
from io import StringIO
from typing import Any

from gateway.records import audit, settled_rows
from gateway.records.audit import Actor
from gateway.records.query import Query, conditions, is_empty, order_of
from gateway.records.record import Record, records_of
from gateway.records.resource import Resource
from gateway.records.values import csv_cells, dates
from gateway.records.values.written_numbers import COMMA, POINT
from outbox.database.transaction import Database, Tx, Values

BOM = "\ufeff"
_OLDEST = "created_at, id"
SEPARATORS = {",": ",", ";": ";", "tab": "\t"}
"""The separators by their names in a request."""
NUMBERS = (POINT, COMMA)
"""The forms of numbers by their names in a request."""
AT_ONCE = 100
"""Rows that are written without letting other work of the process run."""


@lru_cache(maxsize=256)
def header(resource: Resource) -> tuple[str, ...]:
    """Return the names of the columns: id, the fields, what is derived, the times."""
    derived = (d.name for d in resource.derived if d.name not in resource.named)
    return ("id", *resource.named, *derived, "createdAt", "updatedAt")


async def export(
    db: Database,
    actor: Actor,
    resource: Resource,
    query: Query,
    *,
    separator: str = ",",
    bom: bool = False,
    numbers: str = POINT,
) -> AsyncGenerator[bytes, None]:
    """Yield the actor's records as CSV in UTF-8, without keeping them; oldest first by default.

    The records are those of one moment. `query` selects and orders as in a list, without its page.
    Numbers are in the form `numbers`, without groups. The audit log tells of it.

    Raises forbidden, Crowded, DatabaseUnavailable.
    """
    actor.must("read")
    heading = ((BOM if bom else "") + _lines([header(resource)], separator)).encode()
    if is_empty(query):
        yield heading
        return
    now = db.clock.wall()
    sql, args = _select(resource, actor, query, now)
    async with aclosing(db.stream(actor.owner_id, sql, *args)) as batches:
        # With the first rows, so that an error comes before anything is sent.
        batch: Sequence[Values] = await anext(batches, [])
        await db.write(_note, actor, resource)
        while batch:
            for place in range(0, len(batch), AT_ONCE):
                records = records_of(resource, batch[place : place + AT_ONCE], now, actor.zone)
                yield heading + _lines(rows(resource, records, numbers), separator).encode()
                heading = b""
                await asyncio.sleep(0)
            batch = await anext(batches, [])
    if heading:
        yield heading


async def _note(tx: Tx, actor: Actor, resource: Resource) -> None:
    audit.record(tx, actor, "exported", resource.noun, None)


def rows(
    resource: Resource, records: Sequence[Record], numbers: str = POINT
) -> Iterator[list[str]]:
    """Yield the cells of each record in the order of `header`."""
    readers, write = _readers(resource), csv_cells.write
    for record in records:
        yield [write(read(record), numbers) for read in readers]


def _select(resource: Resource, actor: Actor, query: Query, now: int) -> tuple[str, Sequence[Any]]:
    where, args = conditions(resource, query, now, actor.zone)
    walked = query.order or query.ordered_by or query.since is not None
    order = order_of(resource, query) if walked else _oldest(resource)
    sql = (
        f"select {settled_rows.columns(resource)} from {resource.table}"
        f" where {where}{settled_rows.seen(resource)} order by {order}"
    )
    return sql, (actor.owner_id, *args)


@lru_cache(maxsize=64)
def _oldest(resource: Resource) -> str:
    """Return the default order in SQL, with each record after the one of its kind above it."""
    table = resource.table
    above = next((f.column for f, to in resource.references if to.table == table), "")
    if not above:
        return _OLDEST
    return f"""(
      with recursive above (id) as (
        select {table}.{above}
        union select up.{above} from {table} up join above on up.id = above.id
      )
      select count(id) from above), {_OLDEST}"""


@lru_cache(maxsize=256)
def _readers(resource: Resource) -> tuple[Callable[[Record], Any], ...]:
    return tuple(_reader(resource, name) for name in header(resource))


def _reader(resource: Resource, name: str) -> Callable[[Record], Any]:
    """Return a function that reads the JSON form of a value; a bare date has no time."""
    field = resource.named.get(name)
    is_day = next((b.column for b in field.beside if b.part), "") if field is not None else ""
    if not is_day:
        return lambda record: record.shown(name)

    def read(record: Record) -> Any:
        shown = record.shown(name)
        return shown[: dates.DAY_LENGTH] if shown and record.column(is_day) else shown

    return read


def _lines(rows: Sequence[Sequence[str]] | Iterator[Sequence[str]], separator: str) -> str:
    out = StringIO()
    csv.writer(out, delimiter=separator, lineterminator="\r\n").writerows(rows)
    return out.getvalue()
