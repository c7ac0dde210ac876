"""Mails to the owners of webhooks: one for each change, none lost, none repeated, few a day."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from gateway.domain import queued_mail
from gateway.domain.accounts import users
from gateway.server.config import Config, Mail
from gateway.server.upkeep.mailer import Mailer, Result
from outbox import webhooks
from outbox.database.transaction import Database, Tx
from outbox.durations import DAY
from outbox.queue.state import notices, owner_reports
from outbox.queue.state.circuits import Transition
from outbox.queue.state.notices import KINDS, MOST_OF_OWNER, MOST_OF_WEBHOOK, Kind
from outbox.webhooks.operational import NAMES
from tests.support.drain import add_webhook, ring, rows
from tests.support.mailbox import Mailbox, mailbox
from tests.support.site import serving

pytestmark = pytest.mark.usefixtures("duties_look_often")
SITE = "https://crm.example.com"
FROM = "alerts@example.com"


@pytest.fixture
async def box() -> AsyncIterator[Mailbox]:
    async with mailbox() as box:
        yield box


def settings(box: Mailbox) -> Mail:
    return Mail(host="127.0.0.1", port=box.port, security="none", from_address=FROM)


@dataclass
class Post:
    """An owner with a webhook, and the mailer of their installation."""

    db: Database
    owner_id: str
    webhook_id: str
    mailer: Mailer
    counted: list[tuple[str, str]]

    async def tell(self, kind: Kind, webhook_id: str = "") -> None:
        [to] = [to for to, told in owner_reports.KINDS.items() if told == kind]
        change = Transition(webhook_id or self.webhook_id, self.owner_id, to, "http_5xx", None)
        await self.db.write(owner_reports.tell, [change])


async def owner(tx: Tx, email: str) -> str:
    return await users.add(tx, email=email, name="Ana", password_hash="-")


@pytest.fixture
async def post(db: Database, box: Mailbox) -> Post:
    counted: list[tuple[str, str]] = []

    def count(kind: str, result: Result) -> None:
        counted.append((kind, result))

    owner_id = await db.write(owner, "ana@example.com")
    webhook_id, _ = await add_webhook(
        db, ring(), "https://example.com/crm?token=secret", owner=owner_id
    )
    mailer = Mailer(db, settings(box), count, service="CRM\nBcc: x", site=f"{SITE}/")
    return Post(db, owner_id, webhook_id, mailer, counted)


async def test_each_change_is_one_mail(post: Post, box: Mailbox) -> None:
    for kind in KINDS:
        await post.tell(kind)
    assert await post.mailer.any_due()
    await post.mailer.run_once()
    assert not await post.mailer.any_due()
    assert [mail["Subject"].partition(" / ")[2] for mail in box.mails] == [
        "Webhook failing - CRM Bcc: x", "Webhook disabled - CRM Bcc: x",
        "Webhook recovered - CRM Bcc: x",
    ]  # fmt: skip
    for mail, reason in zip(box.mails, ("http_5xx", "http_5xx", "success"), strict=True):
        assert (mail["To"], mail["Bcc"]) == ("ana@example.com", None)
        assert mail["From"] == f'"CRM Bcc: x" <{FROM}>'
        lines = mail.get_content().splitlines()
        assert f"{SITE}/console/webhooks/{post.webhook_id}" in lines
        assert "URL: https://example.com/crm" in lines
        assert f"Motivo / reason: {reason}" in lines
    assert post.counted == [(kind, "sent") for kind in KINDS]
    # An account that has chosen a language gets that one alone.
    await post.db.write(users.change, post.owner_id, {"language": "pt-BR"})
    await post.tell("failing")
    await post.mailer.run_once()
    assert box.mails[-1]["Subject"] == "Webhook com falhas - CRM Bcc: x"
    text = box.mails[-1].get_content()
    assert "Motivo: http_5xx" in text
    assert "The receiver" not in text


async def test_a_day_has_few_mails_of_a_kind_and_as_many_events_as_changes(post: Post) -> None:
    await add_webhook(post.db, ring(), "http://127.0.0.1:9/", *NAMES, owner=post.owner_id)
    for _ in range(MOST_OF_WEBHOOK + 2):
        await post.tell("failing")
    assert len(await post.db.read(rows, "select 1 from events")) == MOST_OF_WEBHOOK + 2
    assert await count(post) == MOST_OF_WEBHOOK
    for _ in range(MOST_OF_OWNER):
        other, _ = await add_webhook(post.db, ring(), "http://127.0.0.1:9/", owner=post.owner_id)
        await post.tell("failing", other)
    assert await count(post) == MOST_OF_OWNER
    await post.tell("disabled")
    assert await count(post) == MOST_OF_OWNER + 1
    await post.db.write(change, "update notices set created_at = created_at - $1", DAY + 1)
    await post.tell("failing")
    assert await count(post) == MOST_OF_OWNER + 2


async def test_a_mail_that_is_refused_for_now_is_tried_again(post: Post, box: Mailbox) -> None:
    await post.tell("disabled")
    box.refusals = ["451 later"]
    await post.mailer.run_once()
    [row] = await post.db.read(rows, "select attempts, error, due_at from notices")
    assert (row["attempts"], row["error"]) == (1, "SMTPRecipientRefused 451")
    assert row["due_at"] > post.db.clock.wall()
    assert not box.mails
    await post.db.write(change, "update notices set due_at = 1")
    await post.mailer.run_once()
    assert len(box.mails) == 1
    assert post.counted == [("disabled", "put_off"), ("disabled", "sent")]


async def test_a_mail_is_given_up_after_its_last_attempt(post: Post, box: Mailbox) -> None:
    await post.tell("disabled")
    box.refusals = ["451 later"] * (len(queued_mail.WAITS) + 2)
    for _ in range(len(queued_mail.WAITS) + 1):
        await post.mailer.run_once()
        await post.db.write(change, "update notices set due_at = 1 where due_at is not null")
    assert post.counted[-1] == ("disabled", "given_up")
    assert not await post.mailer.any_due()


async def test_an_attempt_that_nobody_ended_is_made_again(post: Post, box: Mailbox) -> None:
    await post.tell("disabled")
    assert await post.db.write(notices.take) is not None
    assert not await post.mailer.any_due()
    await post.db.write(change, "update notices set due_at = due_at - $1", notices.LEASE)
    await post.mailer.run_once()
    assert len(box.mails) == 1


@pytest.mark.parametrize("gone", ["user", "webhook"])
async def test_who_is_gone_gets_none(post: Post, box: Mailbox, gone: str) -> None:
    await post.tell("disabled")
    if gone == "user":
        await post.db.write(users.disable, post.owner_id)
    else:
        await post.db.write(change, "delete from webhooks")
    await post.mailer.run_once()
    assert not box.mails
    assert not await post.mailer.any_due()


async def test_the_duty_of_a_gateway_sends_them(db: Database, box: Mailbox) -> None:
    async with serving(db, Config(mail=settings(box))) as site:
        owner_id = await site.user()
        webhook_id, _ = await add_webhook(db, ring(), "https://example.com/crm", owner=owner_id)
        await db.write(
            owner_reports.tell, [Transition(webhook_id, owner_id, "disabled", "gone", 1)]
        )
        mail = await box.next()
        assert mail["Subject"].endswith("Webhook disabled - Carteiro")
        # Without [server] public_url the server does not know the address of its console.
        assert "/console/" not in mail.get_content()
        assert await db.read(webhooks.one, webhook_id)


async def change(tx: Tx, sql: str, *args: object) -> int:
    return await tx.run(sql, *args)


async def count(post: Post) -> int:
    return len(await post.db.read(rows, "select 1 from notices"))
