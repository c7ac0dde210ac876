"""`carteiro erase`: a contact goes with its traces, one that is deleted already too."""

from __future__ import annotations

from argparse import Namespace

import pytest

from gateway.cli import erase as command
from gateway.domain.accounts import users
from gateway.domain.contacts.contacts import CONTACTS
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.draft import check
from gateway.records.errors import Refusal
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


async def erased(db: Database, url: str, contact_id: str) -> list[tuple[str, str, bool]]:
    """Run the command and then the duty; return the events with whether they have bodies."""
    config = Config(database=Settings(url=url))
    lines: list[str] = []
    await command.erase(config, Namespace(email=EMAIL, contact=contact_id), lines.append)
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
    with pytest.raises(Refusal):
        await erased(db, db_url, maria)
    assert not await Erasure(db).any_open()
    with pytest.raises(CannotStart, match="is not the id of a contact"):
        await erased(db, db_url, "maria")
