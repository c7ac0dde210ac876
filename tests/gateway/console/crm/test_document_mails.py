"""Quotes and invoices that go by mail, in one queue with all other mails."""

import io
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from pypdf import PdfReader

from gateway.domain import queued_mail
from gateway.domain.accounts import account_mails
from gateway.domain.queued_mail import QueuedMail
from gateway.domain.sales import document_mails
from gateway.server.upkeep.mailer import Mailer
from outbox.database.transaction import Database, Tx
from tests.gateway.console.account.test_account_mails import SITE, sending, settings, visitor
from tests.gateway.console.crm.conftest import by_rest
from tests.gateway.console.crm.test_verbs import ITEMS, made
from tests.support.console import Guest
from tests.support.drain import rows, run
from tests.support.mailbox import Mailbox, mailbox
from tests.support.rest import Person
from tests.support.site import Site, serving
from tests.support.waiting import until

WAITING = "select 1 from queued_mails where attempts = 1"


@dataclass
class Office:
    """An owner with a mail server, and the browser of a customer."""

    site: Site
    owner: Guest
    customer: Guest
    api: Person
    box: Mailbox

    async def post(self) -> None:
        """Send what is due."""
        await Mailer(self.site.db, settings(self.box), lambda *_: None, site=SITE).run_once()
        # The site sends mails too.
        await until(self._quiet)

    async def told_of_browser(self) -> bool:
        """Return whether the mail about the owner's new browser is sent."""
        await self.post()
        unsent = "select 1 from queued_mails where due_at is not null"
        return bool(self.box.mails) and not await self.site.db.read(rows, unsent)

    async def _quiet(self) -> bool:
        due = f"select 1 from queued_mails where due_at <= {self.site.db.clock.wall()}"
        return not await self.site.db.read(rows, due)


@pytest.fixture
async def office(db: Database) -> AsyncIterator[Office]:
    async with mailbox() as box, serving(db, sending(box)) as site:
        await site.user()
        async with visitor(site) as owner, visitor(site) as customer:
            await owner.sign_in()
            api = await by_rest(owner, "maria@example.com")
            office = Office(site, owner, customer, api, box)
            await until(office.told_of_browser)
            box.mails.clear()
            await db.write(lambda tx: tx.run("delete from queued_mails"))
            yield office


async def test_a_quote_goes_by_mail_with_its_file_and_is_declined(office: Office) -> None:
    contact = await made(office.api, "contacts", name="João", email="joao@example.com")
    quote = await made(office.api, "quotes", items=ITEMS, contactId=contact["id"])
    path = f"/console/quotes/{quote['id']}/send"
    assert 'value="joao@example.com"' in (await office.owner.get(path)).html
    wrong = await office.owner.submit(path, by="mail", email="no address")
    assert (wrong.status, 'id="email-fault"' in wrong.html) == (400, True)
    seen = await office.owner.submit(path, by="mail", email="joao@example.com")
    assert "goes out by e-mail" in seen.html
    await office.post()
    [mail] = office.box.mails
    assert (mail["To"], mail["From"]) == ("joao@example.com", "Maria <crm@example.com>")
    assert mail["Subject"] == "Orçamento Q-000001 - Maria"
    [file] = mail.iter_attachments()
    assert (file.get_content_type(), file.get_filename()) == ("application/pdf", "Q-000001.pdf")
    payload = file.get_payload(decode=True)
    assert isinstance(payload, bytes)
    pdf = PdfReader(io.BytesIO(payload))
    assert "R$ 179,80" in pdf.pages[0].extract_text().replace("\xa0", " ")
    body = mail.get_body(("plain",))
    assert body is not None
    [link] = [line for line in body.get_content().splitlines() if line.startswith(SITE)]
    token = link.partition("token=")[2]
    seen = await office.customer.submit(
        "/documents", at=link.removeprefix(SITE), token=token, decision="decline"
    )
    assert "was declined" in seen.html
    assert (await office.api.get(f"/api/quotes/{quote['id']}")).body["status"] == "rejected"
    # The address does not stay in the queue.
    [row] = await office.site.db.read(rows, "select address, due_at from queued_mails")
    assert (row["address"], row["due_at"]) == (None, None)


async def test_what_ended_before_its_mail_is_not_sent(office: Office) -> None:
    """Nor what a mail server refused for now, when its contact is erased meanwhile."""
    contact = await made(office.api, "contacts", name="João", email="joao@example.com")
    for number, change in enumerate((
        "update quotes set status = 'canceled'",
        "update queued_mails set created_at = created_at",
    )):  # fmt: skip
        quote = await made(office.api, "quotes", items=ITEMS, contactId=contact["id"])
        office.box.refusals = ["451 later"]
        sent = await office.api.post(f"/api/quotes/{quote['id']}/send", {"email": "a@example.com"})
        assert (sent.status, sent.body["status"]) == (200, "sent")
        await office.post()
        await office.site.db.write(run, change)
        if number:
            erased = await office.api.post(f"/api/contacts/{contact['id']}/erase")
            assert erased.status in (200, 202)
            assert await office.site.db.read(rows, WAITING) == []
        await office.site.db.write(run, "update queued_mails set due_at = 1 where due_at > 1")
        await office.post()
        assert office.box.mails == []


async def test_an_address_gets_few_mails_with_documents(office: Office) -> None:
    invoice = await made(office.api, "invoices", total=1, dueDate="2999-12-20")
    path = f"/api/invoices/{invoice['id']}/send"
    assert (await office.api.post(path)).body["error"].startswith("The contact of this invoice has")
    for spelled in ("a@example.com", "A+x@Example.com") * (document_mails.MOST_TO_ONE // 2):
        assert (await office.api.post(path, {"email": spelled})).status == 200
    entries = (await office.api.get(f"/api/audit?recordId={invoice['id']}")).body["data"]
    assert (entries[0]["action"], entries[0]["actor"]["kind"]) == ("sent", "api_key")
    refused = await office.api.post(path, {"email": "a@example.com"})
    assert (refused.status, refused.body["code"]) == (429, "rate_limited")
    assert (await office.api.post(path, {"email": "b@example.com"})).status == 200


async def test_a_server_without_mail_says_so(maria: Guest, api: Person) -> None:
    sent = {"email": "a@example.com"}
    for plural in ("quotes", "invoices"):
        record = await made(api, plural, items=ITEMS, dueDate="2999-12-20")
        refused = await api.post(f"/api/{plural}/{record['id']}/send", sent)
        assert (refused.status, refused.body["code"]) == (409, "conflict")
        page = await maria.get(f"/console/{plural}/{record['id']}/send")
        assert "sends no mails" in page.html
        at = f"/console/{plural}/{record['id']}/send"
        assert (await maria.submit(at, by="mail", email="a@example.com")).status == 409
        assert (await api.get(f"/api/{plural}/{record['id']}")).body["status"] != "sent"
    assert (await api.post(f"/api/quotes/{'0' * 24}/send", sent)).status == 404


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_a_mail_that_cannot_be_written_holds_up_no_other(office: Office) -> None:
    """The date of a document may be at the ends of time."""
    db = office.site.db
    await db.write(account_mails.add, office.api.user_id, "password_changed", {"no such fact": "x"})
    for due in ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"):
        invoice = await made(office.api, "invoices", items=ITEMS, dueDate=due)
        path = f"/api/invoices/{invoice['id']}/send"
        assert (await office.api.post(path, {"email": "a@example.com"})).status == 200
    await office.post()
    assert sorted(mail["Subject"] for mail in office.box.mails) == [
        f"Fatura {number} - Maria" for number in ("INV-000001", "INV-000002")
    ]
    [broken] = await db.read(rows, "select error, attempts from queued_mails where error <> ''")
    assert (broken["error"], broken["attempts"]) == ("KeyError", 1)


async def test_documents_are_sent_after_the_mails_that_somebody_waits_for(db: Database) -> None:
    taken = await db.write(_two_taken)
    assert [mail and mail.kind for mail in taken] == ["password_reset", "invoice_sent"]


async def _two_taken(tx: Tx) -> list[QueuedMail | None]:
    add = """insert into queued_mails (id, owner_id, kind, document_id, created_at, attempts,
      due_at, expires_at) values ($1, 'o', $2, $3, 0, 0, $4, $5)"""
    await tx.run(add, "a", "invoice_sent", "d", 1, tx.now)
    await tx.run(add, "b", "password_reset", None, 2, tx.now)
    return [await queued_mail.take(tx) for _ in range(2)]
