"""The upgrade to one queue of mails: what waited in three tables goes out, each mail once."""

import re
from pathlib import Path

from gateway.domain.accounts import account_mails
from gateway.domain.storefront.mail import mails
from gateway.server.upkeep.mailer import Mailer
from outbox.database.migration_files import read_migrations
from outbox.database.transaction import Tx
from tests.gateway.graphql.test_accounts import sign_up
from tests.gateway.graphql.test_order_mails import set_up
from tests.support.checkouts import bought
from tests.support.databases import SOURCES
from tests.support.drain import rows
from tests.support.mailbox import Mailbox, settings
from tests.support.shop import Shop

GATEWAY = Path(dict(SOURCES)["gateway"])
EARLIER = {
    "mails": ("0015_customers", "id, customer_id, kind, created_at, attempts, due_at, error",
              "customer_id is not null"),
    "order_mails": ("0018_order_mails", "id, owner_id, order_id, contact_id, mailbox, kind,"
                    " created_at, attempts, due_at, error", "order_id is not null"),
    "account_mails": ("0039_account_security", "id, owner_id, kind, address, facts, created_at,"
                      " attempts, due_at, error", "customer_id is null and order_id is null"),
}  # fmt: skip
"""The three tables: the migration that made each, its columns, and which mails it had."""


async def as_before(tx: Tx) -> None:
    """Put the queue back into the tables of the release before."""
    for table, (name, columns, condition) in EARLIER.items():
        text = next(one.text for one in read_migrations("gateway", GATEWAY) if one.name == name)
        made = re.search(rf"create table {table} \(.*?^\)", text, re.S | re.M)
        assert made is not None
        await tx.run(made[0])
        await tx.run(
            f"insert into {table} ({columns}) select {columns} from queued_mails where {condition}"
        )
    await tx.run("drop table queued_mails")


async def upgraded(tx: Tx) -> None:
    [step] = [one for one in read_migrations("gateway", GATEWAY) if "mail_queue" in one.name]
    for statement in step.statements(tx.engine):
        await tx.run(statement)


async def found(shop: Shop) -> list[tuple[object, ...]]:
    columns = ("id", "kind", "attempts", "due_at", "address", "facts", "mailbox")
    every = f"select {', '.join(columns)} from queued_mails order by id"
    return [tuple(row[name] for name in columns) for row in await shop.db.read(rows, every)]


async def test_what_waited_in_three_tables_is_sent_once(shop: Shop, box: Mailbox) -> None:
    await set_up(shop, orderMails=True)
    await sign_up(shop.browser())
    await bought(shop)

    async def queue(tx: Tx) -> None:
        for customer in await tx.all("select id from customers"):
            for kind in mails.KINDS:
                await mails.add(tx, customer["id"], kind)
        owner, said = shop.owner.user_id, {"browser": "Firefox"}
        await account_mails.add(tx, owner, "password_changed", said)
        await account_mails.add(tx, owner, "email_confirm", said, "new@example.com")

    await shop.db.write(queue)
    before = await found(shop)
    assert {row[1] for row in before} >= {*mails.KINDS, "order_received", "email_confirm"}
    await shop.db.write(as_before)
    await shop.db.write(upgraded)
    assert await found(shop) == before
    mailer = Mailer(
        shop.db, settings(box), lambda *_: None, service="CRM", site="https://crm.example"
    )
    for _ in range(2):
        await mailer.run_once()
        assert len(box.mails) == len(before)
    texts = "".join(str(mail) for mail in box.mails)
    assert "Browser: Firefox" in texts
    assert not await mailer.any_due()
