"""Quotes and invoices that are sent: links, the page of the customer, decisions, files."""

import io
import re
from base64 import b64decode
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pixcanvas
import pytest
from PIL import Image
from pypdf import PdfReader
from reportlab.platypus import Paragraph

from gateway.domain import queued_mail
from gateway.domain.images import encoding
from gateway.domain.queued_mail import Post
from gateway.domain.sales import document_letters, document_links, logos, sheet_pdf
from gateway.domain.sales.sheets import Sheet, SheetLine
from tests.gateway.console.crm.test_verbs import ITEMS, made
from tests.gateway.server.images.test_product_images import with_scans
from tests.support.console import CONFIG, Guest, Seen
from tests.support.drain import rows, run
from tests.support.rest import Person, RestApi
from tests.support.tables import in_turn

MAIL = """
insert into queued_mails (id, owner_id, kind, document_id, mailbox, address, created_at, attempts,
  due_at, expires_at)
select id, owner_id, 'invoice_sent', id, 'a', 'a@example.com', 0, 0, 0, 0 from invoices
where id = $1
"""


async def link_to(guest: Guest, plural: str, record_id: str) -> str:
    """Return the address of a new link to a document, without its host."""
    path = f"/console/{plural}/{record_id}/send"
    made = (await guest.submit(path, by="link")).test_id("document-link")
    assert made is not None
    parts = urlsplit(made)
    return f"{parts.path}?{parts.query}"


async def decided(guest: Guest, link: str, decision: str) -> Seen:
    token = link.partition("token=")[2]
    return await guest.submit("/documents", at=link, token=token, decision=decision)


async def events(guest: Guest, name: str) -> int:
    return sum(row[0] == name for row in await RestApi(guest.site).events())


async def test_a_customer_accepts_a_quote_once(maria: Guest, nobody: Guest, api: Person) -> None:
    quote = await made(api, "quotes", items=ITEMS, validUntil="2999-12-31")
    link = await link_to(maria, "quotes", quote["id"])
    assert (await api.get(f"/api/quotes/{quote['id']}")).body["status"] == "sent"
    # It is shown once.
    again = await maria.get(f"/console/quotes/{quote['id']}/send")
    assert again.test_id("document-link") is None
    page = await nobody.get(link)
    assert (page.status, "Coffee &lt;beans&gt;" in page.html) == (200, True)
    assert "script" not in page.headers["Content-Security-Policy"]
    assert "<script" not in page.html
    assert page.headers["X-Robots-Tag"].startswith("noindex")
    assert page.headers["Referrer-Policy"] == "same-origin"
    assert page.headers["Cache-Control"] == "no-store"
    before = await events(maria, "quote.updated")
    seen = await decided(nobody, link, "accept")
    assert (seen.status, "This quote was accepted" in seen.html) == (200, True)
    assert (await api.get(f"/api/quotes/{quote['id']}")).body["status"] == "accepted"
    assert await events(maria, "quote.updated") == before + 1
    # The page has no form any more; who sends it again, or the other decision, changes nothing.
    for decision in ("accept", "decline"):
        token = link.partition("token=")[2]
        fields = [("csrf_token", page.csrf), ("token", token), ("decision", decision)]
        late = await nobody.post("/documents", fields)
        assert (late.status, "already accepted" in late.html) == (409, True)
    assert await events(maria, "quote.updated") == before + 1
    entries = (await api.get(f"/api/audit?recordId={quote['id']}")).body["data"]
    told = [(one["action"], one["actor"]["kind"]) for one in entries[:3]]
    # The last two are of one transaction, whose entries have one time.
    assert [told[0], *sorted(told[1:])] == [
        ("updated", "system"), ("sent", "account"), ("updated", "account"),
    ]  # fmt: skip
    assert entries[0]["actor"]["name"] == "customer"
    # It is in the language of the account, whatever the browser asks for.
    await maria.site.db.write(run, "update users set language = 'pt-BR'")
    page = await nobody.get(link, Accept_Language="en")
    assert ("Este orçamento foi aceito" in page.html, 'lang="pt-BR"' in page.html) == (True, True)


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ("update quotes set valid_until = 1, valid_day = false", "expired", "has expired"),
        ("update quotes set status = 'canceled'", "canceled", "was canceled"),
        ("update quotes set status = 'rejected'", "rejected", "already declined"),
    ],
)
async def test_a_quote_that_is_over_says_so(
    maria: Guest, nobody: Guest, api: Person, change: str, status: str, said: str
) -> None:
    quote = await made(api, "quotes", items=ITEMS, validUntil="2999-12-31")
    link = await link_to(maria, "quotes", quote["id"])
    csrf = (await nobody.get(link)).csrf
    await maria.site.db.write(run, change)
    assert 'name="decision"' not in (await nobody.get(link)).html
    token = link.partition("token=")[2]
    fields = [("csrf_token", csrf), ("token", token), ("decision", "accept")]
    late = await nobody.post("/documents", fields)
    assert (late.status, said in late.html) == (409, True)
    assert (await api.get(f"/api/quotes/{quote['id']}")).body["status"] == status


async def test_text_behind_the_mark_of_a_token_is_no_header(
    maria: Guest, nobody: Guest, api: Person
) -> None:
    link = await link_to(maria, "quotes", (await made(api, "quotes", items=ITEMS))["id"])
    token = link.partition("token=")[2] + ".\r\nX-Sent: by the form"
    fields = [("csrf_token", (await nobody.get(link)).csrf), ("token", token)]
    seen = await nobody.post("/documents", [*fields, ("decision", "accept")])
    assert (seen.status, "This quote was accepted" in seen.html) == (200, True)


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("field", ["contactId", "companyId"])
async def test_a_document_for_somebody_else_has_no_link_and_no_mail_of_before(
    maria: Guest, nobody: Guest, api: Person, field: str, deleted: bool
) -> None:
    plural = {"contactId": "contacts", "companyId": "companies"}[field]
    ana, bia = [
        (await api.post(f"/api/{plural}", {"name": name})).body["id"] for name in ("Ana", "Bia")
    ]
    invoice = await made(api, "invoices", total=10, dueDate="2999-12-31", **{field: ana})
    path = f"/api/invoices/{invoice['id']}"
    link = await link_to(maria, "invoices", invoice["id"])
    await maria.site.db.write(run, MAIL, invoice["id"])
    assert (await api.put(path, {"notes": "Thank you"})).status == 200
    assert "Ana" in (await nobody.get(link)).html
    assert len(await maria.site.db.read(rows, "select id from queued_mails")) == 1
    if deleted:
        assert (await api.delete(f"/api/{plural}/{ana}")).status == 200
    assert (await api.put(path, {field: bia})).status == 200
    seen = await nobody.get(link)
    assert (seen.status, "Bia" in seen.html) == (404, False)
    assert await maria.site.db.read(rows, "select id from queued_mails") == []


async def test_a_mail_that_was_taken_does_not_reach_an_earlier_customer(
    maria: Guest, api: Person
) -> None:
    db = maria.site.db
    ana, bia = [await made(api, "contacts", name=name) for name in ("Ana", "Bia")]
    invoice = await made(api, "invoices", total=10, dueDate="2999-12-31", contactId=ana["id"])
    await db.write(run, MAIL, invoice["id"])
    taken = await db.write(queued_mail.take)
    assert taken is not None
    post = Post("t" * 43, "Carteiro", "https://crm.example.com")
    changed = {"contactId": bia["id"]}
    assert (await api.put(f"/api/invoices/{invoice['id']}", changed)).status == 200
    assert await db.write(document_letters.letter, taken, post) is None
    assert await db.read(rows, "select * from document_links") == []


async def test_what_is_no_link_shows_nothing(maria: Guest, nobody: Guest, api: Person) -> None:
    quote = await made(api, "quotes", items=ITEMS)
    invoice = await made(api, "invoices", total=50, dueDate="2999-12-20")
    link = await link_to(maria, "quotes", quote["id"])
    other = await link_to(maria, "invoices", invoice["id"])
    page = await nobody.get(link)
    # Without the token of this browser, or from another site, nothing is decided.
    token = link.partition("token=")[2]
    for fields, headers in (
        ([("token", token), ("decision", "accept")], {}),
        ([("csrf_token", page.csrf), ("token", token), ("decision", "accept")],
         {"Origin": "https://evil.example"}),
    ):  # fmt: skip
        assert (await nobody.post("/documents", fields, follow=True, **headers)).status == 403
    # An invoice cannot be accepted, and there is no third decision.
    for wrong, decision in ((other, "accept"), (link, "maybe")):
        fields = [("csrf_token", page.csrf), ("token", wrong.partition("token=")[2]),
                  ("decision", decision)]  # fmt: skip
        assert (await nobody.post("/documents", fields)).status == 404
    for path in ("/documents", "/documents?token=x", "/documents?token=%C3%A9", link[:-1],
                 f"/documents?token={quote['id']}", "/documents/pdf?token=x"):  # fmt: skip
        assert (await nobody.get(path)).status == 404, path
    await maria.submit(f"/console/quotes/{quote['id']}/send", by="end")
    assert (await nobody.get(link)).status == 404
    assert (await nobody.get(other)).status == 200
    lifetime = document_links.LIFETIME
    await maria.site.db.write(
        run, "update document_links set expires_at = expires_at - $1", lifetime
    )
    assert (await nobody.get(other)).status == 404
    assert await maria.site.db.write(document_links.EXPIRY.purge, 10) == 1


async def test_an_address_decides_a_few_times_a_minute(maria: Guest, nobody: Guest) -> None:
    csrf = (await nobody.get("/console/sign-in")).csrf
    fields = [("csrf_token", csrf), ("token", "x"), ("decision", "accept")]
    most = CONFIG.limits.forms_per_minute
    assert {(await nobody.post("/documents", fields)).status for _ in range(most)} == {404}
    slowed = await nobody.post("/documents", fields)
    assert (slowed.status, "Retry-After" in slowed.headers) == (429, True)


async def test_nobody_sends_the_document_of_another(maria: Guest, rui: Guest, api: Person) -> None:
    quote = await made(api, "quotes", items=ITEMS)
    path = f"/console/quotes/{quote['id']}"
    csrf = (await rui.get("/console/account")).csrf
    for by in ("link", "mail", "end", ""):
        fields = [("csrf_token", csrf), ("by", by), ("email", "x@example.com")]
        assert (await rui.post(f"{path}/send", fields)).status == 403, by
    for page in ("send", "pdf"):
        assert (await rui.get(f"{path}/{page}")).status == 403
    assert (await api.get(f"/api/quotes/{quote['id']}")).body["status"] == "draft"


async def bytes_of(guest: Guest, path: str) -> bytes:
    async with guest.http.get(path) as answer:
        assert (answer.status, answer.content_type) == (200, "application/pdf")
        return await answer.read()


def code_in(text: str) -> str:
    """Return the Pix code of a page or a file, where it may stand on several lines."""
    found = re.search(r"000201[\s\S]*?6304(?:\s*[0-9A-F]){4}", unescape(text))
    assert found is not None, text
    return found[0].replace("\n", "")


async def test_an_invoice_has_the_company_and_its_pix_code(
    maria: Guest, nobody: Guest, api: Person
) -> None:
    settings = {
        "tradeName": "Café São João & Filhos Ímpar Ltda", "cnpj": "12ABC34501DE35",
        "legalName": "São João Comércio de Café Ltda", "address": "Rua A, 1\n01001-000 São Paulo",
        "phone": "(11) 3333-4444", "bankDetails": "Banco 001\nConta 1-2",
        "pixKey": "Pix@Cafe.example", "invoicePrefix": "FAT", "quotePrefix": "ORÇ",
    }  # fmt: skip
    first = await made(api, "invoices", total=1, dueDate="2999-12-20")
    answer = await api.put("/api/settings/company", settings)
    assert (answer.status, answer.body["pixKey"]) == (200, "pix@cafe.example")
    assert (await api.get("/api/settings/company")).body == answer.body
    invoice = await made(api, "invoices", total=1234.5, dueDate="2020-12-20", notes="Olá €")
    assert (first["number"], invoice["number"]) == ("INV-000001", "FAT-000002")
    assert (await made(api, "quotes", items=ITEMS))["number"] == "ORÇ-000001"
    answer = await api.post(f"/api/invoices/{invoice['id']}/link")
    assert answer.status == 201
    link = answer.body["url"].partition("/documents")[2]
    page = (await nobody.get(f"/documents{link}")).html
    file = PdfReader(io.BytesIO(await bytes_of(nobody, f"/documents/pdf{link}")))
    text = "\n".join(one.extract_text() for one in file.pages)
    code = code_in(page)
    assert code == code_in(text)
    read = pixcanvas.parse_pix(code)
    assert (read.pix_key, str(read.amount), read.merchant_name, read.txid) == (
        "pix@cafe.example", "1234.50", "SAO JOAO COMERCIO DE CAFE", "FAT000002",
    )  # fmt: skip
    for words in ("Café São João", "CNPJ 12.ABC.345/01DE-35", "01001-000 São Paulo", "Conta 1-2",
                  "Overdue", "Olá €", "FAT-000002"):  # fmt: skip
        assert words in unescape(page), words
        assert words in text, words
    # What is paid asks for no payment.
    assert (await api.post(f"/api/invoices/{invoice['id']}/pay")).status == 200
    assert "000201" not in (await nobody.get(f"/documents{link}")).html
    assert (await api.delete(f"/api/invoices/{invoice['id']}/link")).body == {"ended": 1}
    assert (await nobody.get(f"/documents{link}")).status == 404


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("Łukasz Ćwik", "Lukasz Cwik"),
        ("Иван Петров", "Ivan Petrov"),
        ("王小明", "WangXiaoMing"),
        ("a\u0301gua e c\u0327a\u0303o", "água e ção"),
        ("<b>&amp; “aspas” – €", "<b>&amp; “aspas” – €"),
        ("☕\u202e\u0007", ":coffee:"),
        ("Café ☕ da Serra😀", "Café da Serra"),
    ],
)
def test_a_file_has_every_script_in_its_letters(sent: str, shown: str) -> None:
    assert " ".join(sheet_pdf.plain(sent).split()) == shown


PLAIN = Sheet(
    language="en", kind="quote", number="1", title="Quote 1", dates=(), state="", state_word="",
    sender="Ana", sender_lines=(), logo=None, customer_label="To", customer_lines=(),
    headings=SheetLine("Text", "Number", "Price", "", "Total"), lines=(),
    amounts=[("Total", "R$ 2")], bank_label="Bank", bank="", pix_label="", pix="",
    notes_label="Notes", notes="",
)  # fmt: skip


def test_a_text_of_any_length_fits_on_the_pages() -> None:
    # Spelled, a line and an address are higher than a page.
    line = SheetLine("☕" * 500, "1", "R$ 1", "", "R$ 1")
    sheet = replace(
        PLAIN, sender="☕" * 200, sender_lines=["W" * 500] * 15, customer_lines=["☕" * 200] * 15,
        lines=[line, line], notes="☕" * 1_000,
    )  # fmt: skip
    shown = "".join(
        one.extract_text() for one in PdfReader(io.BytesIO(sheet_pdf.pdf_of(sheet))).pages
    )
    assert "".join(shown.split()).count(":coffee:") == 2 * 500 + 200 + 15 * 200 + 1_000


@pytest.mark.parametrize(
    "long",
    [
        "\ufdfa" * 2_000,
        "\ufdfa " * 1_500,
        "a" * 65_535,
        "água " * 13_000,
        "W" * 3_000 + " " + "x" * 60_000,
        "\xa0" * 65_535,
        "<&>" * 5_000,
        "a\n" * 500,
        "😀" * 800,
        "",
    ],
)
@pytest.mark.parametrize("place", ["notes", "line", "lines"])
def test_a_file_takes_work_in_proportion_to_its_letters(
    monkeypatch: pytest.MonkeyPatch, place: str, long: str
) -> None:
    measured = 0
    measure = Paragraph.breakLines

    def counted(self: Paragraph, width: Any) -> Any:
        nonlocal measured
        for one in self.frags:
            if isinstance(one, list):
                words = [text for _, text in one[1:]]
            else:
                words = one.words if hasattr(one, "words") else [one.text]
            measured += sum(map(len, words))
        return measure(self, width)

    monkeypatch.setattr(Paragraph, "breakLines", counted)
    line = SheetLine(long[:500] if place == "lines" else long, "1", "R$ 1", "", "R$ 1")
    sheet = {
        "notes": replace(PLAIN, notes=long),
        "line": replace(PLAIN, lines=[line]),
        "lines": replace(PLAIN, lines=[line] * 5),
    }[place]
    assert sheet_pdf.pdf_of(sheet).startswith(b"%PDF")
    letters = len(sheet_pdf.plain(line.description)) * (5 if place == "lines" else 1)
    assert measured < 6 * letters + 1_000


async def test_a_long_quote_has_several_pages(maria: Guest, api: Person) -> None:
    line = {"description": "Ação " + "x" * 480, "quantity": 1, "unitPrice": 1}
    notes = "n" * 4_000 + "\n" * 90
    quote = await made(api, "quotes", items=[line] * 50, notes=notes)
    path = f"/console/quotes/{quote['id']}/pdf"
    file = PdfReader(io.BytesIO(await bytes_of(maria, path)))
    assert 4 < len(file.pages) < 20
    assert file.metadata is not None
    assert file.metadata.title == "Quote Q-000001"


@in_turn(
    ("kind", "size", "status"),
    [("PNG", (900, 300), 200), ("JPEG", (50, 500), 200), ("MPO", (60, 40), 200),
     ("GIF", (9, 9), 400), ("", (0, 0), 400), ("PNG", (5000, 4000), 400)],
)  # fmt: skip
async def test_a_logo_is_checked_and_stored_small(
    maria: Guest, api: Person, kind: str, size: tuple[int, int], status: int
) -> None:
    data = io.BytesIO(b"" if kind else b"<svg onload='x'/>")
    if kind:
        picture, profile = Image.new("RGB", size), b"profile"
        if kind == "MPO":
            picture.save(data, kind, save_all=True, append_images=[picture])
        else:
            picture.save(data, kind, comment=b"private", icc_profile=profile)
    path = "/console/settings/company"
    token = (await maria.get(path)).csrf
    seen = await maria.upload(f"{path}/logo", data.getvalue(), token=token)
    assert seen.status == status
    quote = await made(api, "quotes", items=ITEMS)
    page = await maria.get(f"/console/quotes/{quote['id']}/print")
    found = re.search(r'class="logo" src="data:image/(png|jpeg);base64,([^"]*)', page.html)
    assert (found is not None) == (status == 200)
    if found is not None:
        stored = Image.open(io.BytesIO(b64decode(found[2])))
        assert stored.width <= logos.BOX[0]
        assert stored.height <= logos.BOX[1]
        assert not {"comment", "icc_profile"} & stored.info.keys()
        assert await bytes_of(maria, f"/console/quotes/{quote['id']}/pdf")
        await maria.submit(f"{path}/logo/remove", at=path)
        assert 'class="logo"' not in (await maria.get(path)).html


async def test_a_logo_is_decoded_with_a_limit_of_scans_and_outside_of_the_server(
    maria: Guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/console/settings/company"
    token = (await maria.get(path)).csrf
    for scans, status in ((100, 200), (101, 400)):
        assert (await maria.upload(f"{path}/logo", with_scans(scans), token=token)).status == status
    # As the system ends a process that needs too much.
    program = tmp_path / "encoder.py"
    program.write_text("import os; os.kill(os.getpid(), 9)")
    monkeypatch.setattr(encoding, "PROGRAM", program)
    seen = await maria.upload(f"{path}/logo", with_scans(9), token=token)
    assert seen.status == 400
    assert "megapixels" in seen.html
    monkeypatch.setattr("sys.executable", str(tmp_path / "none"))
    assert (await maria.upload(f"{path}/logo", with_scans(9), token=token)).status == 503
    assert 'class="logo"' in (await maria.get(path)).html


@in_turn(
    ("field", "value"),
    [("cnpj", "11.222.333/0001-82"), ("cnpj", "00000000000000"), ("cnpj", "12ABC34501DE36"),
     ("pixKey", "11988887777x"), ("invoicePrefix", "A B"), ("phone", "abc")],
)  # fmt: skip
async def test_what_is_wrong_about_a_company_is_named(
    maria: Guest, api: Person, field: str, value: str
) -> None:
    answer = await api.put("/api/settings/company", {field: value})
    assert (answer.status, answer.body["details"][0]["field"]) == (400, field)
    path = "/console/settings/company"
    [version] = re.findall('name="version" value="([^"]*)"', (await maria.get(path)).html)
    seen = await maria.submit(path, version=version, follow=True, **{field: value})
    assert (seen.status, f'id="{field}-fault"' in seen.html) == (400, True)
