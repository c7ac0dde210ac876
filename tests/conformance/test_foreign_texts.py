"""A text that no record can hold finds nothing, on each engine, in the searches of the console."""

from gateway.domain.sales import boards
from gateway.records.audit import Actor
from gateway.records.places import Place
from outbox.database.transaction import Database

OWNER = Actor("a" * 24, "session", zone="UTC")


async def test_a_stage_with_a_nul_character_has_no_cards(db: Database) -> None:
    column = await db.read(boards.more, OWNER, "lead\0", Place(1, "b" * 24))
    assert (column.cards, column.onward) == ((), None)
