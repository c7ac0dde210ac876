"""Mails to customers by a real SMTP server: what they say, that none is lost, that none repeats."""

import asyncio
import re
import ssl
from email.message import EmailMessage
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import trustme

from gateway.domain import queued_mail
from gateway.domain.storefront.mail import mails
from gateway.server.config import Mail
from gateway.server.telemetry.metrics import METRICS
from gateway.server.upkeep.mailer import Mailer
from outbox.database.transaction import Database, Row, Tx
from tests.gateway.graphql.test_accounts import log_in, sign_up, user_of
from tests.support.mailbox import FROM, Mailbox, bodies, mailbox, settings
from tests.support.shop import Browser, Shop

pytestmark = pytest.mark.usefixtures("duties_look_often")


def mailer_of(shop: Shop, settings: Mail) -> Mailer:
    return Mailer(shop.db, settings, shop.api.site.app[METRICS].mail)


def counted(shop: Shop, result: str) -> float | None:
    """Return how many attempts at mails that verify an address ended so."""
    registry = shop.api.site.app[METRICS].registry
    return registry.get_sample_value("mail_attempts_total", {"kind": "verify", "result": result})


def token_in(mail: EmailMessage, page: str) -> str:
    """Return the token of the only link of a mail, in both forms, which leads to this page."""
    text, html = bodies(mail)
    [link] = re.findall(r"https://\S+", text)
    assert html.links == [link]
    parts = urlsplit(link)
    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == page
    [token] = parse_qs(parts.query)["token"]
    return str(token)


async def ask(browser: Browser, email: str = "ana@example.com") -> Any:
    return await browser.do("clientRequestPasswordReset", "success", email=email)


async def rows(tx: Tx) -> list[Row]:
    return await tx.all("select * from queued_mails")


async def all_due(tx: Tx) -> None:
    await tx.run("update queued_mails set due_at = 1 where due_at is not null")


async def test_a_sign_up_is_verified_by_mail(posting: Shop, box: Mailbox) -> None:
    browser = posting.browser()
    await sign_up(browser)
    mail = await box.next()
    assert mail["To"] == "Ana@Example.com"
    assert mail["From"] == f"Coffee Shop <{FROM}>"
    assert "Confirm your email" in mail["Subject"]
    token = token_in(mail, "https://shop.example/verify-email")
    wrong = await browser.do("clientVerifyEmail", "success", token=token[::-1])
    assert (wrong.code, wrong.error["extensions"]["field"]) == ("INVALID_TOKEN", "token")
    assert (await browser.do("clientVerifyEmail", "success", token=token)).data
    assert (await user_of(browser))["emailVerified"] is True
    # It works once.
    assert (await browser.do("clientVerifyEmail", "success", token=token)).code == "INVALID_TOKEN"
    assert await posting.db.read(rows) == []


async def test_a_password_is_reset_by_mail(posting: Shop, box: Mailbox) -> None:
    path = f"/api/stores/{posting.store['id']}"
    page = {"passwordResetUrl": "https://www.shop.example/account?view=reset#top"}
    assert (await posting.owner.put(path, page)).status == 200
    browser, other = posting.browser(), posting.browser()
    await sign_up(browser)
    await box.next()
    assert (await ask(other)).data == {"clientRequestPasswordReset": {"success": True}}
    mail = await box.next(2)
    text, _ = bodies(mail)
    assert "view=reset&token=" in text
    assert text.count("#top") == 1
    token = token_in(mail, "https://www.shop.example/account")
    reset = {"token": token, "password": "segredo-2"}
    short = await other.do("clientResetPassword", "success", **(reset | {"password": "12345"}))
    assert short.code == "PASSWORD_TOO_SHORT"
    # The token of another store's customer is none here.
    body = {"hostname": "other.example", "name": "Other"}
    assert (await posting.owner.post("/api/stores", body)).status == 201
    foreign = await other.do("clientResetPassword", "success", hostname="other.example", **reset)
    assert foreign.code == "INVALID_TOKEN"
    assert (await other.do("clientResetPassword", "success", **reset)).data
    assert await user_of(browser) is None
    assert (await log_in(other)).code == "INVALID_CREDENTIALS"
    assert (await log_in(other, password="segredo-2")).data
    # Whoever reads the mail owns the address.
    assert (await user_of(other))["emailVerified"] is True
    assert (await other.do("clientResetPassword", "success", **reset)).code == "INVALID_TOKEN"


async def test_a_request_reveals_nothing_and_does_not_flood(posting: Shop, box: Mailbox) -> None:
    browser = posting.browser()
    answers = [(await ask(browser, email)).body for email in ("nobody@example.com", "\u00e9", "x")]
    await sign_up(browser)
    await box.next()
    answers.append((await ask(browser)).body)
    assert all(body == answers[0] for body in answers)
    assert (await box.next(2))["To"] == "Ana@Example.com"
    assert len(box.mails) == 2


async def test_a_customer_gets_few_mails_of_a_kind(shop: Shop, box: Mailbox) -> None:
    await queued(shop.db, shop, mails.MOST + 3)
    assert len(await shop.db.read(rows)) == mails.MOST
    await mailer_of(shop, settings(box)).run_once()
    assert len(box.mails) == mails.MOST
    # As long as the tokens of those are valid, there is no further one.
    await queued(shop.db, None)
    assert await shop.db.read(rows) == []


async def test_an_expired_token_is_none(posting: Shop, box: Mailbox) -> None:
    browser = posting.browser()
    await sign_up(browser)
    await ask(browser)
    token = token_in(await box.next(2), "https://shop.example/reset-password")

    async def expire(tx: Tx) -> None:
        await tx.run("update customer_tokens set expires_at = $1", tx.now)

    await posting.db.write(expire)
    reset = {"token": token, "password": "segredo-2"}
    answer = await browser.do("clientResetPassword", "success", **reset)
    assert answer.code == "INVALID_TOKEN"


async def test_no_token_is_stored_in_plain_form(posting: Shop, box: Mailbox) -> None:
    browser = posting.browser()
    await sign_up(browser)
    token = token_in(await box.next(), "https://shop.example/verify-email")

    async def stored(tx: Tx) -> list[Row]:
        return await tx.all("select * from customer_tokens")

    [row] = await posting.db.read(stored)
    values = [row[name] for name in row.keys()]  # noqa: SIM118 - a row iterates over its values
    assert all(token.encode() not in bytes(v) for v in values if isinstance(v, bytes))
    assert token not in values


async def test_without_smtp_a_reset_says_so(shop: Shop) -> None:
    browser = shop.browser()
    await sign_up(browser)
    answer = await ask(browser)
    assert answer.code == "UNAVAILABLE"
    assert "[mail]" in answer.error["message"]
    assert await shop.db.read(rows) == []


async def queued(db: Database, shop: Shop | None, count: int = 1) -> None:
    """Put mails to the customer, who signs up before, into the queue of a server without SMTP."""
    if shop is not None:
        await sign_up(shop.browser())

    async def add(tx: Tx) -> None:
        row = await tx.one("select id from customers")
        assert row is not None
        for _ in range(count):
            await mails.add(tx, row["id"], "verify")

    await db.write(add)


async def test_a_mail_that_fails_is_tried_again_until_it_is_given_up(
    shop: Shop, box: Mailbox
) -> None:
    db = shop.db
    mailer = Mailer(db, settings(box), lambda *_: None)
    await queued(db, shop)
    box.refusals = ["451 later"] * (len(queued_mail.WAITS) + 2)
    for attempt in range(1, len(queued_mail.WAITS) + 1):
        await db.write(all_due)
        await mailer.run_once()
        [row] = await db.read(rows)
        assert row["attempts"] == attempt
        assert row["error"] == "SMTPRecipientRefused 451"
        wait = queued_mail.WAITS[attempt - 1] * 1_000_000
        assert db.clock.wall() + wait - 20_000_000 < row["due_at"] <= db.clock.wall() + wait
        assert not await mailer.any_due()
    await db.write(all_due)
    await mailer.run_once()
    [row] = await db.read(rows)
    assert row["due_at"] is None
    assert await db.write(queued_mail.EXPIRY.purge, 10) == 0
    assert box.mails == []


async def test_a_refused_address_is_given_up_at_once(shop: Shop, box: Mailbox) -> None:
    await queued(shop.db, shop)
    box.refusals = ["550 nobody here"]
    await mailer_of(shop, settings(box)).run_once()
    [row] = await shop.db.read(rows)
    assert (box.tries, row["due_at"]) == (1, None)
    assert counted(shop, "given_up") == 1


async def test_a_server_that_is_down_loses_no_mail(shop: Shop, box: Mailbox) -> None:
    await queued(shop.db, shop)
    await mailer_of(shop, settings(box, port=1)).run_once()
    [row] = await shop.db.read(rows)
    assert row["attempts"] == 1
    assert (counted(shop, "put_off"), counted(shop, "sent")) == (1, 0)
    await shop.db.write(all_due)
    await mailer_of(shop, settings(box)).run_once()
    assert len(box.mails) == 1
    assert await shop.db.read(rows) == []
    assert (counted(shop, "put_off"), counted(shop, "sent")) == (1, 1)


async def test_two_leaders_send_a_mail_once(shop: Shop, box: Mailbox) -> None:
    await queued(shop.db, shop)
    mailers = [mailer_of(shop, settings(box)) for _ in range(4)]
    await asyncio.gather(*(mailer.run_once() for mailer in mailers))
    assert len(box.mails) == 1


async def test_an_interrupted_attempt_is_repeated_after_its_lease(shop: Shop, box: Mailbox) -> None:
    await queued(shop.db, shop)
    taken = await shop.db.write(queued_mail.take)
    assert taken is not None
    mailer = mailer_of(shop, settings(box))
    assert not await mailer.any_due()
    await shop.db.write(all_due)
    await mailer.run_once()
    assert len(box.mails) == 1


async def test_starttls_and_sign_in(
    shop: Shop, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    await queued(shop.db, shop)
    async with mailbox(context, ("user", "pass")) as box:
        given = settings(box, security="starttls", username="user", password="pass")
        # An unknown authority is refused, and the mail waits.
        await mailer_of(shop, given).run_once()
        assert box.mails == []
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        wrong = settings(box, security="starttls", username="user", password="wrong")
        await shop.db.write(all_due)
        await mailer_of(shop, wrong).run_once()
        [row] = await shop.db.read(rows)
        assert row["error"] == "SMTPAuthenticationError 535"
        assert row["due_at"] is not None
        await shop.db.write(all_due)
        await mailer_of(shop, given).run_once()
        assert box.encrypted == [True]


async def test_an_address_with_letters_beyond_ascii(posting: Shop, box: Mailbox) -> None:
    answer = await sign_up(posting.browser(), email="joão@exämple.com")
    assert answer.data["clientSignup"]["user"]["email"] == "joão@exämple.com"
    mail = await box.next()
    assert "joão@exämple.com" in str(mail["To"])
    assert token_in(mail, "https://shop.example/verify-email")
