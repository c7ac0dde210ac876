"""Moves an erasure on by one unit of bounded work: lines, records or stored responses.

Texts are read in pages and searched apart from the event loop, outside the transaction that changes
them. A unit that the database ends, because it takes too long, is halved the next time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.contacts import person_erasures
from gateway.domain.privacy import searches, steps, stored_responses, waiting_lines
from gateway.domain.privacy.page_sizes import BYTES, FIRST, PageSize
from gateway.domain.privacy.searches import Key
from outbox.database.transaction import Database


@dataclass(frozen=True, slots=True)
class Ahead:
    """What one unit says of the next: records to search, and the size of a page."""

    wanted: Sequence[Key] = ()
    size: PageSize = FIRST


async def advance(db: Database, erasure_id: str, ahead: Ahead) -> Ahead:
    """Do the next unit of an erasure; return what follows. A killed one goes on without it."""
    erasure = await db.read(person_erasures.one, erasure_id)
    if erasure is None or erasure.person is None:
        return Ahead()
    size = PageSize(erasure.part(ahead.size.rows), erasure.part(BYTES))
    if erasure.stage == "lines":
        return Ahead(size=await waiting_lines.move_on(db, erasure, size))
    if erasure.stage == "responses":
        return Ahead(size=await stored_responses.move_on(db, erasure, size))
    found = await searches.search(db, erasure, ahead.wanted) if ahead.wanted else steps.NOTHING
    return Ahead(await db.write(steps.step, erasure_id, found))
