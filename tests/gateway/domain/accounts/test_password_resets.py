"""Links for a forgotten password: their number is limited, but nobody can use them all up."""

from collections.abc import AsyncIterator

import pytest

from gateway.domain import queued_mail
from gateway.domain.accounts import (
    account_letters,
    account_mails,
    account_tokens,
    password_resets,
    users,
)
from gateway.domain.accounts.account_tokens import LIFETIME
from outbox.database.transaction import Database, Tx
from outbox.durations import MINUTE
from tests.support.clocks import Wall
from tests.support.databases import open_fresh

EMAIL = "maria@example.com"


@pytest.fixture
def wall() -> Wall:
    return Wall()


@pytest.fixture
async def db(db_url: str, wall: Wall) -> AsyncIterator[Database]:
    db = await open_fresh(db_url, wall)
    yield db
    await db.close()


async def links(db: Database, asked: int) -> list[str]:
    """Ask for a link so many times, send what is queued, and return the tokens of the links."""
    for _ in range(asked):
        await db.write(password_resets.request, EMAIL)
    await db.write(password_resets.queue_mails)
    sent: list[str] = []

    async def send(tx: Tx) -> bool:
        mail = await queued_mail.take(tx)
        if mail is None:
            return False
        post = queued_mail.Post(tx.new_id(), "Carteiro", "http://crm.example.com")
        assert await account_letters.letter(tx, mail, post) is not None
        await queued_mail.sent(tx, mail)
        sent.append(post.token)
        return True

    while await db.write(send):
        pass
    return sent


async def test_nobody_else_uses_up_the_links_of_an_account(db: Database, wall: Wall) -> None:
    await db.write(users.add, email=EMAIL, name="Maria", password_hash="-")
    rounds = []
    for _ in range(5):
        rounds.append(len(await links(db, password_resets.MOST + 1)))
        wall.offset += LIFETIME + MINUTE
    # A day has its number of mails, and then each lifetime of a link has one.
    assert rounds == [3, 3, 3, 1, 1]
    [token] = await links(db, 1)
    wall.offset += LIFETIME - MINUTE
    # Whoever asks now has a link that works.
    assert await links(db, 1) == []
    assert await db.read(account_tokens.opened, "reset", token)


async def test_other_mails_have_no_more_than_their_number(db: Database, wall: Wall) -> None:
    owner_id = await db.write(users.add, email=EMAIL, name="Maria", password_hash="-")
    for _ in range(account_mails.MOST + 2):
        await db.write(account_mails.add, owner_id, "email_requested")
        wall.offset += LIFETIME + MINUTE
    count = "select count(*) as mails from queued_mails where kind = 'email_requested'"
    row = await db.read(lambda tx: tx.one(count))
    assert row is not None
    assert row["mails"] == account_mails.MOST
