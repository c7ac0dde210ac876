"""Deletes the lines of imports that name a person: those that wait, and those that had faults.

The lines of an import are searched once, page by page, outside the transactions that delete them.
An erasure stores how far each import was searched; the transaction that ends its records locks the
imports and looks whether there are lines behind: so what is uploaded meanwhile is searched as well,
and no import brings the person back.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from msgspec import Struct, json, structs

from gateway.domain.contacts import person_erasures
from gateway.domain.contacts.person_erasures import Erasure
from gateway.domain.privacy.apart import apart
from gateway.domain.privacy.escapes import decoded
from gateway.domain.privacy.mailboxes import Mailboxes, flat
from gateway.domain.privacy.page_sizes import SIZE, PageSize
from gateway.domain.record_origins import normal
from outbox.database.sql import items
from outbox.database.transaction import DUTIES, Database, Row, Tx

Kind = Literal["headings", "lines", "faulty"]
RECENT = 15
"""The latest imports of an owner that may have faulty lines: see import_jobs.WITH_LINES."""
TOGETHER = 32
"""Rows that are searched together."""
_ID = re.compile(r"(?<![0-9a-z])[0-9a-f]{24}(?![0-9a-z])")


class Mark(Struct, frozen=True, array_like=True):
    """How far an import was searched: its start, its waiting and its faulty lines, its headings."""

    run: int = 0
    line: int = 0
    faulty: int = 0
    headed: bool = False


class Place(Struct, frozen=True):
    """How far an erasure is with the imports of its owner.

    `ids` are what the person's contact was called elsewhere; `upto`: all headings of imports up to
    this id were searched.
    """

    ids: tuple[str, ...] = ()
    upto: str = ""
    marks: dict[str, Mark] = {}


@dataclass(frozen=True, slots=True)
class LinePage:
    """Rows to search: headings of imports by id, or lines of one import by number."""

    kind: Kind
    rows: Sequence[Row]
    import_id: str = ""
    run: int = 0
    headed: bool = False


# `headed`: its headings are known and final, but it may not have been there for the page of them.
_IMPORTS = f"""
select i.id, i.run, i.state <> 'uploading' and i.lines_left = true as headed,
  (select max(line) from import_lines where import_id = i.id) as line,
  (select max(line) from import_faulty_lines where import_id = i.id) as faulty
from imports i where i.owner_id = $1 and (i.lines_left = true or i.id in (
  select id from imports where owner_id = $1 order by id desc limit {RECENT}
)) order by i.id
"""
_LOCKED = f"{_IMPORTS} /*postgres for update of i*/"
_NEWEST = "select id from imports where owner_id = $1 order by id desc limit 1"


def _paged(columns: str, table: str, key: str, text: str, where: str) -> str:
    """Return the query for the next rows of a table: $3 at most, within $4 bytes but for one."""
    return f"""
    select {columns}, p.size from (
      select {key} as place, size, sum(size) over (order by {key}) - size as earlier from (
        select {key}, {SIZE.format(text)} as size from {table}
        where {where} = $1 and {key} > $2 order by {key} limit $3
      ) as sizes
    ) as p join {table} t on t.{where} = $1 and t.{key} = p.place
    where p.earlier < $4 order by t.{key}
    """


_HEADINGS = _paged("t.id, t.headings as cells", "imports", "id", "headings", "owner_id")
_LINES = _paged("t.line, t.cells", "import_lines", "line", "cells", "import_id")
_FAULTY = _paged(
    "t.line, t.record_id, t.cells", "import_faulty_lines", "line", "cells", "import_id"
)
_HEADINGS_OF = f"""
select id, headings as cells, {SIZE.format("headings")} as size from imports where id = $1
"""
_LOCK = "select run from imports where id = $1 /*postgres for update*/"
_LINES_AMONG = (
    "in (select cast(value as bigint) from /*sqlite json_each($2)*/"
    " /*postgres json_array_elements_text(cast($2 as json)) as lines(value)*/)"
)
_DROP_LINES = f"delete from import_lines where import_id = $1 and line {_LINES_AMONG}"
_DROP_FAULTY = f"delete from import_faulty_lines where import_id = $1 and line {_LINES_AMONG}"
_DROP_FAULTS = f"delete from import_faults where import_id = $1 and line {_LINES_AMONG}"
_DROP_HEADINGS = "update imports set headings = '[]', fields = '[]' where id = $1"
# A file without a heading has a person in its place.
_DROP_FAULTS_OF = """
delete from import_faults where import_id = $1 and heading in (
  select value from /*sqlite json_each($2)*/
  /*postgres json_array_elements_text(cast($2 as json)) as headings(value)*/)
"""


def place_of(text: str) -> Place:
    """Return the place that an erasure stores."""
    return json.decode(text, type=Place) if text else Place()


def with_ids(place: str, ids: Sequence[str]) -> str:
    """Return the place of an erasure that looks for these ids too, from the start if one is new."""
    before = place_of(place)
    if set(ids) <= set(before.ids):
        return place
    return _text(Place(ids=tuple(dict.fromkeys((*before.ids, *ids)))))


async def any_left(tx: Tx, owner_id: str, place: str) -> bool:
    """Lock the imports of an owner; return whether something in them was not searched yet."""
    return await _next(await tx.all(_LOCKED, owner_id), tx, owner_id, place_of(place)) is not None


async def move_on(db: Database, erasure: Erasure, size: PageSize) -> PageSize:
    """Search a page of lines and delete those that name the person, or end the stage.

    Return the size of the next page.
    """
    batch = await db.scan(DUTIES, page, erasure.owner_id, place_of(erasure.place), size)
    if batch is None:
        await db.write(_end, erasure.id)
        return size
    assert erasure.person is not None
    hits = await apart(_hits, batch.rows, erasure.person.emails, _ids(erasure))
    await db.write(_drop, erasure.id, batch, hits)
    return size.after(len(batch.rows), sum(int(row["size"]) for row in batch.rows))


async def page(tx: Tx, owner_id: str, place: Place, size: PageSize) -> LinePage | None:
    """Return rows of an owner's imports that were not searched; None if all were."""
    which = await _next(await tx.all(_IMPORTS, owner_id), tx, owner_id, place)
    if which is None:
        return None
    kind, row = which
    if row is None:
        return LinePage(kind, await tx.all(_HEADINGS, owner_id, place.upto, size.rows, size.bytes))
    if kind == "headings":
        return LinePage(
            kind, await tx.all(_HEADINGS_OF, row["id"]), row["id"], row["run"], headed=True
        )
    mark = _mark(place, row)
    query, after = (_LINES, mark.line) if kind == "lines" else (_FAULTY, mark.faulty)
    rows = await tx.all(query, row["id"], after, size.rows, size.bytes)
    return LinePage(kind, rows, row["id"], row["run"])


async def _next(
    rows: Sequence[Row], tx: Tx, owner_id: str, place: Place
) -> tuple[Kind, Row | None] | None:
    """Return what to search next, and in which import."""
    newest = await tx.one(_NEWEST, owner_id)
    if newest is not None and newest["id"] > place.upto:
        return "headings", None
    for row in rows:
        mark = _mark(place, row)
        if row["headed"] and not mark.headed:
            return "headings", row
        if (row["line"] or 0) > mark.line:
            return "lines", row
        if (row["faulty"] or 0) > mark.faulty:
            return "faulty", row
    return None


def _mark(place: Place, row: Row) -> Mark:
    """Return how far an import was searched; one that started again has other faulty lines."""
    mark = place.marks.get(row["id"], Mark(run=row["run"]))
    return mark if mark.run == row["run"] else structs.replace(mark, run=row["run"], faulty=0)


def _ids(erasure: Erasure) -> frozenset[str]:
    """Return the ids that a line of the person may have."""
    return frozenset(map(normal, (erasure.record_id, *place_of(erasure.place).ids)))


def _hits(rows: Sequence[Row], emails: Sequence[str], ids: frozenset[str]) -> list[Any]:
    """Return the keys of the rows that name the person, and for headings which ones do."""
    mailboxes = Mailboxes(emails)
    hits: list[Any] = []
    for start in range(0, len(rows), TOGETHER):
        part = rows[start : start + TOGETHER]
        named = [_record_id(row) in ids for row in part]
        # Most lines name somebody else, so they are searched together and as they are stored.
        if not any(named) and not _has("\n".join(row["cells"] for row in part), mailboxes, ids):
            continue
        for row, is_named in zip(part, named, strict=True):
            cells = json.decode(row["cells"], type=list[str])
            found = [cell for cell in cells if _has(cell, mailboxes, ids)]
            if found or is_named:
                hits.append((row[0], found))
    return hits


def _record_id(row: Row) -> str | None:
    return row["record_id"] if "record_id" in row.keys() else None  # noqa: SIM118 - a row


def _has(text: str, mailboxes: Mailboxes, ids: frozenset[str]) -> bool:
    """Return whether a text has one of the addresses or of the ids."""
    return any(mailboxes.within(one) or _has_id(flat(one), ids) for one in decoded(text))


def _has_id(text: str, ids: frozenset[str]) -> bool:
    return any(one in text for one in ids) and not ids.isdisjoint(_ID.findall(text))


async def _drop(tx: Tx, erasure_id: str, page: LinePage, hits: Sequence[Any]) -> None:
    """Delete what a page has of the person, and store how far the erasure is."""
    erasure = await person_erasures.one(tx, erasure_id, lock=True)
    if erasure is None or erasure.person is None or erasure.stage != "lines":
        return
    place, dropped = place_of(erasure.place), 0
    if page.kind == "headings":
        for import_id, headings in hits:
            await tx.run(_DROP_HEADINGS, import_id)
            await tx.run(_DROP_FAULTS_OF, import_id, items(headings))
        if not page.headed and page.rows:
            place = structs.replace(place, upto=page.rows[-1]["id"])
    if page.import_id:
        there = await tx.one(_LOCK, page.import_id)
        if there is None or there["run"] != page.run:
            # It was started again or is gone: the next page shows which.
            return
        lines = items([line for line, _ in hits]) if page.kind != "headings" else "[]"
        if page.kind == "lines" and hits:
            dropped = await tx.run(_DROP_LINES, page.import_id, lines)
        elif page.kind == "faulty" and hits:
            await tx.run(_DROP_FAULTS, page.import_id, lines)
            dropped = await tx.run(_DROP_FAULTY, page.import_id, lines)
        place = _marked(place, page)
    await person_erasures.save(
        tx, erasure, stage="lines", person=erasure.person, place=_text(place),
        erased={"importLines": dropped},
    )  # fmt: skip


def _marked(place: Place, page: LinePage) -> Place:
    """Return the place after a page of one import."""
    mark = place.marks.get(page.import_id, Mark())
    if mark.run != page.run:
        mark = structs.replace(mark, run=page.run, faulty=0)
    if page.headed:
        mark = structs.replace(mark, headed=True)
    elif page.rows:
        mark = structs.replace(mark, **{_COLUMN[page.kind]: page.rows[-1]["line"]})
    return structs.replace(place, marks={**place.marks, page.import_id: mark})


_COLUMN = {"lines": "line", "faulty": "faulty"}


async def _end(tx: Tx, erasure_id: str) -> None:
    """Go on with the records; if lines came meanwhile, these come back."""
    erasure = await person_erasures.one(tx, erasure_id, lock=True)
    if erasure is not None and erasure.stage == "lines":
        await person_erasures.save(
            tx, erasure, stage="records", person=erasure.person, place=erasure.place
        )


def _text(place: Place) -> str:
    return json.encode(place).decode()
