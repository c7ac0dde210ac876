"""Mark the events of records and requests, so that a search need not read every event.

A block has four bytes for each of BLOCK events in the order of `seq`: a checksum of the record's
id, and one of the request's. A search for an id reads 8 KB for each thousand events. A duty marks a
block when all of its events are handed out; the newest events are not marked yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import pack
from zlib import crc32

from outbox.database.transaction import DUTIES, Database, Tx

BLOCK = 4_096
WIDTH = 4
PAGE = 128
"""Blocks that one round of a search reads: 4 MB."""
PURGED = 100

SPAN = """
select (select seq from outbox_state) as seq,
  (select seq from events where seq is not null order by seq limit 1) as oldest,
  (select min(first_seq) from event_marks) as lowest,
  (select max(first_seq) from event_marks) as highest
"""
ROWS = """
select seq, record_id, request_id from events where seq >= $1 and seq < $2 order by seq
"""
INSERT = """
insert into event_marks (first_seq, records, requests) values ($1, $2, $3)
on conflict (first_seq) do nothing
"""
PURGE = """
delete from event_marks where first_seq in (
  select first_seq from event_marks where first_seq < $1 order by first_seq limit $2)
"""
REPLACE = "update event_marks set records = $2, requests = $3 where first_seq = $1"
MARKED = "select max(first_seq) as highest from event_marks"
BLOCKS = f"""
select first_seq, records, requests from event_marks
where first_seq < $1 order by first_seq desc limit {PAGE}
"""


class Marks:
    """The duty that marks new blocks, and deletes the marks of events that are deleted."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def run_once(self) -> None:
        """Mark all blocks that are complete, and delete the past ones."""
        while (first := await self._db.read(next_block)) is not None:
            records, requests = await self._db.scan(DUTIES, marks_of, first)
            await self._db.write(store, first, records, requests)
        while (before := await self._db.read(past)) is not None:
            self._db.observer.purged("event_marks", await self._db.write(purge, before, PURGED))
        self._db.observer.swept("event_marks")


async def next_block(tx: Tx) -> int | None:
    """Return the first place of the next block to mark, None while none is complete."""
    row = await tx.one(SPAN)
    if row is None or row["seq"] is None or row["oldest"] is None:
        return None
    first: int = row["oldest"] // BLOCK * BLOCK
    if row["highest"] is not None:
        first = max(first, row["highest"] + BLOCK)
    return first if row["seq"] >= first + BLOCK - 1 else None


async def past(tx: Tx) -> int | None:
    """Return the place before which all events are deleted, None when no marks are left there."""
    row = await tx.one(SPAN)
    if row is None or row["lowest"] is None:
        return None
    oldest = row["seq"] + 1 if row["oldest"] is None else row["oldest"]
    before: int = oldest // BLOCK * BLOCK
    return before if row["lowest"] < before else None


async def marks_of(tx: Tx, first: int) -> tuple[bytes, bytes]:
    """Return the checksums of records and of requests of a block; places without one are 0."""
    records, requests = [0] * BLOCK, [0] * BLOCK
    for row in await tx.all(ROWS, first, first + BLOCK):
        place = row["seq"] - first
        records[place] = checksum(row["record_id"])
        if row["request_id"] is not None:
            requests[place] = checksum(row["request_id"])
    return pack(f"<{BLOCK}I", *records), pack(f"<{BLOCK}I", *requests)


async def store(tx: Tx, first: int, records: bytes, requests: bytes) -> None:
    """Store the marks of a block."""
    await tx.run(INSERT, first, records, requests)


async def renew(tx: Tx, seqs: Iterable[int]) -> None:
    """Make the marks of these places anew, after events are deleted there."""
    for first in sorted({seq // BLOCK * BLOCK for seq in seqs}):
        await tx.run(REPLACE, first, *await marks_of(tx, first))


async def purge(tx: Tx, before: int, limit: int) -> int:
    """Delete up to `limit` blocks before a place; return how many."""
    return await tx.run(PURGE, before, limit)


async def marked(tx: Tx) -> int:
    """Return the place up to which events are marked."""
    row = await tx.one(MARKED)
    return 0 if row is None or row["highest"] is None else int(row["highest"]) + BLOCK


async def places(
    tx: Tx, record_id: str, request_id: str, before: int
) -> tuple[list[int], int | None]:
    """Return the `seq` of marked events that may be of this record or request, the newest first.

    The second value is where the next round starts, None at the end.
    """
    seqs: list[int] = []
    rows = await tx.all(BLOCKS, before)
    for row in rows:
        first = row["first_seq"]
        here = {
            first + place
            for marks, text in ((row["records"], record_id), (row["requests"], request_id))
            for place in _places(bytes(marks), checksum(text))
        }
        seqs += sorted((seq for seq in here if seq < before), reverse=True)
    return seqs, rows[-1]["first_seq"] if len(rows) == PAGE else None


def checksum(text: str) -> int:
    """Return the mark of an id, never 0."""
    return crc32(text.encode()) or 1


def _places(marks: bytes, mark: int) -> Iterator[int]:
    needle = pack("<I", mark)
    at = marks.find(needle)
    while at >= 0:
        if at % WIDTH == 0:
            yield at // WIDTH
        at = marks.find(needle, at + 1)
