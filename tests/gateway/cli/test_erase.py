"""`carteiro erase`: it shows whom it erases and asks; a deleted contact has traces, too."""

from __future__ import annotations

import io
import sys
from argparse import Namespace

import pytest

from gateway.cli import erase as command
from gateway.domain.accounts import users
from gateway.domain.contacts.contacts import CONTACTS
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.record import check
from gateway.server.config import Config
from gateway.server.config import Database as Settings
from outbox.database.transaction import Database, Tx
from outbox.errors import CannotStart
from outbox.queue.drain.fanout import fan_out
from outbox.queue.upkeep.erasure import Erasure
from tests.outbox.queue.replays.test_replay import ROOM
from tests.support.drain import rows

EMAIL = "ana@example.com"
BODIES = "select record_id, name, body is not null as kept from events order by pos"


async def account(tx: Tx, email: str) -> str:
    return await users.add(tx, email=email, name="Ana", password_hash="-")


async def contact(tx: Tx, owner_id: str, name: str) -> str:
    made = await actions.create(
        tx, Actor(owner_id, "system"), CONTACTS, check(CONTACTS, {"name": name}, creating=True)
    )
    return made.id


async def ordered(url: str, person: str, yes: bool = True) -> list[str]:
    """Run the command; return what it says."""
    lines: list[str] = []
    asked = Namespace(email=EMAIL, person=person, yes=yes)
    await command.erase(Config(database=Settings(url=url)), asked, lines.append)
    return lines


async def erased(db: Database, url: str, contact_id: str) -> list[tuple[str, str, bool]]:
    """Run the command and then the duty; return the events with whether they have bodies."""
    await ordered(url, contact_id)
    await db.write(fan_out, ROOM)
    await Erasure(db).run_once()
    return [
        (row["record_id"], row["name"], bool(row["kept"])) for row in await db.read(rows, BODIES)
    ]


async def test_a_contact_goes_with_its_traces(db: Database, db_url: str) -> None:
    owner_id = await db.write(account, EMAIL)
    maria, joao = [await db.write(contact, owner_id, name) for name in ("Maria", "João")]
    assert await erased(db, db_url, maria.upper()) == [
        (maria, "contact.created", False),
        (joao, "contact.created", True),
        (maria, "contact.deleted", True),
    ]
    assert [row["id"] for row in await db.read(rows, "select id from contacts")] == [joao]


async def test_a_contact_of_another_account_stays(db: Database, db_url: str) -> None:
    await db.write(account, EMAIL)
    other = await db.write(account, "rita@example.com")
    maria = await db.write(contact, other, "Maria")
    for person, told in (
        (maria, "is no contact and no customer of ana@example.com"),
        (maria[:-1] + ("0" if maria[-1] != "0" else "1"), "nothing is erased"),
        ("maria", "is not the id of a contact or a customer"),
    ):
        with pytest.raises(CannotStart, match=told):
            await erased(db, db_url, person)
    assert not await Erasure(db).any_open()


@pytest.mark.parametrize(
    ("answer", "goes"), [("yes\n", True), ("YES \n", True), ("y\n", False), ("", False)]
)
async def test_it_shows_whom_it_would_erase_and_asks(
    answer: str, goes: bool, db: Database, db_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner_id = await db.write(account, EMAIL)
    maria = await db.write(contact, owner_id, "Maria \x1b[2J")
    await db.write(fan_out, ROOM)
    said = io.StringIO(answer)
    monkeypatch.setattr(sys, "stdin", said)
    with pytest.raises(CannotStart, match="no terminal to ask at; --yes erases without asking"):
        await ordered(db_url, maria, yes=False)
    monkeypatch.setattr(said, "isatty", lambda: True)
    if goes:
        lines = await ordered(db_url, maria, yes=False)
        assert f"contact {maria} of {EMAIL}: Maria" in lines[0]
        assert "\x1b" not in lines[0]
        assert lines[2:4] == ["  contacts: 1", "  events: 1"]
    else:
        with pytest.raises(CannotStart, match="nothing is erased"):
            await ordered(db_url, maria, yes=False)
    assert len(await db.read(rows, "select id from contacts")) == (not goes)
