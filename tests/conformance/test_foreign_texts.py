"""A text that no record can hold finds nothing, on each engine, in the searches of the console."""

from gateway.console.records import pickers
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.privacy import overview
from gateway.domain.sales import boards
from gateway.records.access import Actor
from gateway.records.query import Place
from outbox.database.transaction import Database

OWNER = Actor("a" * 24, "session", zone="UTC")


async def test_a_stage_with_a_nul_character_has_no_cards(db: Database) -> None:
    column = await db.read(boards.more, OWNER, "lead\0", Place(1, "b" * 24))
    assert (column.cards, column.onward) == ((), None)


async def test_a_search_for_a_person_with_a_nul_character_finds_nobody(db: Database) -> None:
    found = await db.read(overview.find, OWNER, "maria\0 11 98888-7777")
    assert (found.contacts, found.clients) == ([], [])


async def test_a_name_with_a_nul_character_in_a_form_names_nobody(db: Database) -> None:
    assert await db.read(pickers.matches, OWNER, CONTACTS, "maria\0lima") == []
