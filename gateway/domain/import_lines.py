"""The lines of CSV files that wait for their import, and those that had faults in it.

They are personal data: waiting lines go with their import, and an erasure reaches all of them, see
gateway.domain.privacy.waiting_lines.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import json

from outbox.database.sql import insert
from outbox.database.transaction import Tx

Line = tuple[int, list[str]]
"""The number of a line in its file, and its cells."""


class FaultyLine(NamedTuple):
    """A line that was refused, or imported without some of its cells as the record `record_id`."""

    line: int
    record_id: str | None
    cells: list[str]


_AFTER = """
select line, cells from import_lines where import_id = $1 and line > $2 order by line limit $3
"""
_DROP_UPTO = "delete from import_lines where import_id = $1 and line <= $2"
_THERE = "select line from import_lines where import_id = $1 and line > $2 and line <= $3"
_FAULTY_AFTER = """
select line, record_id, cells from import_faulty_lines where import_id = $1 and line > $2
order by line limit $3
"""
# Those before these few were forgotten when they were among them.
_OLDER = """
import_id in (select id from imports where owner_id = $1 order by id desc limit 5 offset $2)
"""
_encode = json.Encoder().encode


async def add(tx: Tx, import_id: str, lines: Sequence[Line]) -> None:
    """Store lines of a file."""
    rows: list[Sequence[Any]] = [
        (import_id, number, _encode(cells).decode()) for number, cells in lines
    ]
    await insert(tx, "import_lines", ("import_id", "line", "cells"), rows)


async def after(tx: Tx, import_id: str, place: int, most: int, characters: int) -> list[Line]:
    """Return the lines that follow the line `place`: up to `most`, with up to so many characters.

    One line is returned however long it is. No more rows are read than twice what is returned: the
    length of a line is known only once it is read.
    """
    lines: list[Line] = []
    while (room := most - len(lines)) > 0:
        last = lines[-1][0] if lines else place
        asked = min(room, max(1, len(lines)))
        rows = await tx.all(_AFTER, import_id, last, asked)
        for row in rows:
            characters -= len(row["cells"])
            if lines and characters < 0:
                return lines
            lines.append((row["line"], json.decode(row["cells"], type=list[str])))
        if len(rows) < asked or characters < 0:
            break
    return lines


async def there(tx: Tx, import_id: str, place: int, upto: int) -> set[int]:
    """Return the numbers of the lines after `place`, up to `upto`, that are still there."""
    return {row["line"] for row in await tx.all(_THERE, import_id, place, upto)}


async def drop_upto(tx: Tx, import_id: str, place: int) -> None:
    """Delete the lines up to `place`."""
    await tx.run(_DROP_UPTO, import_id, place)


async def keep(tx: Tx, import_id: str, lines: Sequence[FaultyLine]) -> None:
    """Keep faulty lines."""
    rows: list[Sequence[Any]] = [
        (import_id, one.line, one.record_id, _encode(one.cells).decode()) for one in lines
    ]
    await insert(tx, "import_faulty_lines", ("import_id", "line", "record_id", "cells"), rows)


async def faulty_after(tx: Tx, import_id: str, place: int, most: int) -> list[FaultyLine]:
    """Return up to `most` faulty lines that follow the line `place`."""
    rows = await tx.all(_FAULTY_AFTER, import_id, place, most)
    return [
        FaultyLine(row["line"], row["record_id"], json.decode(row["cells"], type=list[str]))
        for row in rows
    ]


async def forget_older(tx: Tx, owner_id: str, latest: int) -> None:
    """Delete the faulty lines of the owner's imports before the `latest` ones, and their cells.

    An erasure reads all that are kept.
    """
    await tx.run(f"delete from import_faulty_lines where {_OLDER}", owner_id, latest - 1)
    await tx.run(
        f"update import_faults set value = '' where value <> '' and {_OLDER}", owner_id, latest - 1
    )
