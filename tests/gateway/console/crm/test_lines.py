"""The lines of quotes and invoices in their form, totals before saving, and the printed sheet."""

import re
from html import unescape
from typing import Any

from tests.gateway.console.crm.test_verbs import ITEMS, made
from tests.support.console import Guest, Seen
from tests.support.rest import Person, RestApi


def sums(page: Seen) -> dict[str, str]:
    """Return the totals that a page shows, by their label."""
    form = r'<dt>([^<]*)</dt><dd[^>]*>(?:− )?<span class="money">([^<]*)'
    return {unescape(label): value for label, value in re.findall(form, page.html)}


def row(place: int, **fields: str) -> dict[str, Any]:
    return {f"items[{place}].{name}": text for name, text in fields.items()}


async def test_totals_are_shown_before_anything_is_saved(maria: Guest, api: Person) -> None:
    fields = {
        **row(0, description="Coffee", quantity="1,5", unitPrice="89,90", discount="4,85"),
        **row(1, description="Tea", quantity="2", unitPrice="10", discount=""),
        "discount": "10", "only": "totals",
    }  # fmt: skip
    page = await maria.get("/console/quotes/new")
    fields["csrf_token"] = page.csrf
    before = len(await RestApi(maria.site).events())
    seen = await maria.post("/console/quotes/lines", list(fields.items()), HX_Request="true")
    assert seen.status == 200
    assert sums(seen) == {"Subtotal": "R$150.00", "Discount": "R$10.00", "Total": "R$140.00"}
    assert re.findall(r'id="line-[01]".*?money">([^<]*)', seen.html) == ["R$130.00", "R$20.00"]
    assert "<html" not in seen.html
    assert len(await RestApi(maria.site).events()) == before
    # What is saved then has the same total.
    del fields["only"]
    saved = await maria.post("/console/quotes", list(fields.items()))
    assert (await api.get(f"/api/quotes/{saved.id}")).body["total"] == 140
    # The number is taken when it is saved alone.
    assert (await api.get(f"/api/quotes/{saved.id}")).body["number"] == "Q-000001"


async def test_a_product_is_found_and_added_without_scripts(maria: Guest, api: Person) -> None:
    product = await made(api, "products", name="Café <moído>", price=12.5, sku="CAF-1")
    page = await maria.submit(
        "/console/invoices/lines", at="/console/invoices/new", find="cafe", dueDate="2026-12-20",
        **row(0, description="Tea", quantity="2", unitPrice="10"),
    )  # fmt: skip
    assert "<html" in page.html
    assert "Add “Café &lt;moído&gt;”" in page.html
    assert 'value="Tea"' in page.html
    assert 'value="2026-12-20"' in page.html
    assert sums(page) == {"Subtotal": "R$20.00", "Discount": "R$0.00", "Shipping": "R$0.00",
                          "Total": "R$20.00"}  # fmt: skip
    page = await maria.submit(
        "/console/invoices/lines", at="/console/invoices/new", add=product["id"],
        **row(0, description="Tea", quantity="2", unitPrice="10"),
    )  # fmt: skip
    assert 'value="Café &lt;moído&gt;"' in page.html
    assert f'name="items[1].productId" value="{product["id"]}"' in page.html
    assert sums(page)["Total"] == "R$32.50"
    assert (await api.get("/api/invoices")).body["total"] == 0


async def test_a_document_is_edited_only_while_it_can_be(maria: Guest, api: Person) -> None:
    for plural, end, more in (
        ("quotes", "send", {}),
        ("invoices", "pay", {"dueDate": "2026-12-20"}),
    ):
        path = f"/console/{plural}/{(await made(api, plural, items=ITEMS, **more))['id']}"
        assert f"{path}/edit" in (await maria.get(path)).html
        await maria.submit(f"{path}/{end}")
        assert f"{path}/edit" not in (await maria.get(path)).html


async def test_what_has_no_total_is_told(maria: Guest) -> None:
    page = await maria.get("/console/quotes/new")
    for fields, told in (
        (row(0, description="", quantity="1", unitPrice="1"), "required"),
        (row(0, description="x", quantity="many", unitPrice="1"), "number"),
        ({**row(0, description="x", quantity="1", unitPrice="1"), "discount": "5"}, "at most"),
    ):
        sent = {"csrf_token": page.csrf, "only": "totals", **fields}
        seen = await maria.post("/console/quotes/lines", list(sent.items()), HX_Request="true")
        assert (seen.status, sums(seen), told in seen.html) == (200, {}, True), told


async def test_nobody_counts_the_document_of_another_nor_adds_their_product(
    maria: Guest, rui: Guest, api: Person
) -> None:
    quote = await made(api, "quotes", items=ITEMS)
    product = await made(api, "products", name="Secret", price=1)
    token = (await rui.get("/console/account")).csrf
    sent: list[Any] = [("csrf_token", token)]
    assert (await rui.post(f"/console/quotes/{quote['id']}/lines", sent)).status == 403
    seen = await rui.post(
        "/console/quotes/lines", [*sent, ("add", product["id"]), ("find", "secret")]
    )
    assert "Secret" not in seen.html
    assert (await rui.get(f"/console/quotes/{quote['id']}/print")).status == 403
    assert (await rui.get(f"/console/invoices/{quote['id']}/print")).status == 404


async def test_a_sheet_has_what_the_customer_reads(maria: Guest, api: Person) -> None:
    company = await made(api, "companies", name="Padaria & Cia", cnpj="11.222.333/0001-81")
    contact = await made(api, "contacts", name="João <da> Silva", email="joao@example.com")
    quote = await made(
        api, "quotes", items=ITEMS, discount=9.8, validUntil="2026-12-15",
        companyId=company["id"], contactId=contact["id"], notes="Entrega\ngrátis",
    )  # fmt: skip
    page = await maria.get(f"/console/quotes/{quote['id']}/print", Accept_Language="pt-BR")
    for text in (
        "Orçamento Q-000001", "Padaria &amp; Cia", "João &lt;da&gt; Silva", "joao@example.com",
        "15 de dezembro de 2026", "Coffee &lt;beans&gt;", "Entrega\ngrátis",
    ):  # fmt: skip
        assert text in page.html
    assert sums(page) == {
        "Subtotal": "R$\xa0179,80", "Desconto": "R$\xa09,80", "Total": "R$\xa0170,00",
    }  # fmt: skip
    plain = await made(api, "invoices", total=50, dueDate="2026-12-20")
    sheet = await maria.get(f"/console/invoices/{plain['id']}/print")
    assert sums(sheet) == {"Total": "R$50.00"}
