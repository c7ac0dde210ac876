"""Moves an erasure on by one unit of bounded work: lines, records or stored responses.

Texts are read in pages and searched apart from the event loop, outside the transaction that changes
them. A unit that the database ends, because it takes too long, is halved the next time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.contacts import person_erasures
from gateway.domain.contacts.person_erasures import Erasure
from gateway.domain.privacy import (
    erased_responses,
    erasure_units,
    page_sizes,
    searches,
    waiting_lines,
)
from gateway.domain.privacy.page_sizes import FIRST, PageSize
from gateway.domain.privacy.searches import Key
from outbox.database.transaction import Database, Tx
from outbox.errors import DatabaseUnavailable

UNITS = 6
"""Units that a request does itself, so that few records are gone when it is answered."""
CHEAP = 16_384
"""Bytes of texts that each of them searches."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """What one unit says of the next: records to search, and the size of a page."""

    wanted: Sequence[Key] = ()
    size: PageSize = FIRST


async def advance(db: Database, erasure_id: str, ahead: Ahead, most: int | None = None) -> Ahead:
    """Do the next unit of an erasure; return what follows. A killed one goes on without it.

    `most`: bytes of texts that it may search at all.
    """
    erasure = await db.read(person_erasures.one, erasure_id)
    if erasure is None or erasure.person is None:
        return Ahead()
    size = PageSize(erasure.part(ahead.size.rows), erasure.part(most or page_sizes.BYTES))
    if erasure.stage == "lines":
        return Ahead(size=await waiting_lines.move_on(db, erasure, size))
    if erasure.stage == "responses":
        return Ahead(size=await erased_responses.move_on(db, erasure, size))
    findings = erasure_units.NOTHING
    if ahead.wanted:
        findings = await searches.search(db, erasure, ahead.wanted, most)
    return Ahead(await db.write(erasure_units.step, erasure_id, findings))


async def at_once(db: Database, erasure: Erasure) -> Erasure:
    """Do the first units of an erasure in its request, if they are cheap; return it afterwards."""
    ahead = Ahead()
    try:
        for _ in range(UNITS):
            if erasure.stage not in ("lines", "records"):
                break
            ahead = await advance(db, erasure.id, ahead, CHEAP)
            erasure = await db.read(_again, erasure)
    except DatabaseUnavailable:
        # It is stored, so the duty does it.
        pass
    return erasure


async def _again(tx: Tx, erasure: Erasure) -> Erasure:
    return await person_erasures.one(tx, erasure.id) or erasure
