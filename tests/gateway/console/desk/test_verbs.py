"""The verbs of records in the console: offered by state, the same units, refusals in a sentence."""

from typing import Any

from tests.support.console import Guest, Seen
from tests.support.rest import Person, RestApi

ITEMS = [{"description": "Coffee <beans>", "quantity": 2, "unitPrice": 89.9}]
VERBS = (
    "complete", "reopen", "win", "lose", "send", "accept", "reject", "cancel", "convert", "pay",
)  # fmt: skip


async def made(api: Person, plural: str, **fields: Any) -> dict[str, Any]:
    reply = await api.post(f"/api/{plural}", fields)
    assert reply.status == 201, reply.text
    return dict(reply.body)


async def again(api: Person, plural: str, one: dict[str, Any]) -> dict[str, Any]:
    return dict((await api.get(f"/api/{plural}/{one['id']}")).body)


def offered(page: Seen, one: dict[str, Any]) -> list[str]:
    """Return the verbs that a page of a record has a button or a link for."""
    return [verb for verb in VERBS if f'/{one["id"]}/{verb}"' in page.html]


async def test_a_quote_goes_through_its_states_to_an_invoice_that_is_paid(
    maria: Guest, api: Person
) -> None:
    quote = await made(api, "quotes", items=ITEMS)
    path = f"/console/quotes/{quote['id']}"
    before = len(await RestApi(maria.site).events())
    assert offered(await maria.get(path), quote) == ["send", "accept", "cancel"]
    asked = await maria.get(f"{path}/send")
    assert "From now on the quote cannot be edited" in asked.html
    assert "R$179.80" in asked.html
    page = await maria.submit(f"{path}/send")
    assert page.path == f"{path}?done=quote_send"
    assert "Quote marked as sent." in page.html
    assert offered(page, quote) == ["accept", "reject", "cancel"]
    page = await maria.submit(f"{path}/accept")
    assert offered(page, quote) == ["convert"]
    page = await maria.submit(f"{path}/convert", dueDate="2026-12-20")
    assert page.path.startswith("/console/invoices/")
    invoice = (await api.get(f"/api/invoices/{page.id}")).body
    assert (invoice["quoteId"], invoice["total"]) == (quote["id"], 179.8)
    assert invoice["dueDate"].startswith("2026-12-20")
    assert offered(page, invoice) == ["cancel", "pay"]
    assert offered(await maria.get(path), quote) == []
    pay = f"/console/invoices/{invoice['id']}/pay"
    page = await maria.submit(pay, paidAt="2026-12-10", method="pix", reference=" E18 <x> ")
    assert page.path == f"/console/invoices/{invoice['id']}?done=invoice_pay"
    paid = await again(api, "invoices", invoice)
    assert (paid["status"], paid["method"], paid["reference"]) == ("paid", "pix", "E18 <x>")
    names = [name for name, _ in (await RestApi(maria.site).events())[before:]]
    assert names == ["quote.updated", "quote.updated", "invoice.created", "invoice.paid"]


async def test_what_was_typed_wrong_is_told_at_its_field(maria: Guest, api: Person) -> None:
    invoice = await made(api, "invoices", items=ITEMS, dueDate="2026-12-20")
    pay = f"/console/invoices/{invoice['id']}/pay"
    page = await maria.submit(pay, paidAt="tomorrow", method="pix", reference="R" * 10)
    assert page.status == 400
    assert 'id="paidAt-fault"' in page.html
    assert 'value="RRRRRRRRRR"' in page.html
    assert (await again(api, "invoices", invoice))["status"] == "pending"


async def test_a_state_that_refuses_is_told_in_a_sentence(maria: Guest, api: Person) -> None:
    for plural, verb, then in (
        ("quotes", "accept", "cancel"), ("quotes", "cancel", "send"), ("invoices", "cancel", "pay"),
    ):  # fmt: skip
        more = {"dueDate": "2026-12-20"} if plural == "invoices" else {}
        one = await made(api, plural, items=ITEMS, **more)
        path = f"/console/{plural}/{one['id']}"
        # A second tab still has the form.
        token = (await maria.get(f"{path}/{then}")).csrf
        await maria.submit(f"{path}/{verb}", reason="Twice")
        before = await again(api, plural, one)
        for page, status in (
            (await maria.post(f"{path}/{then}", [("csrf_token", token)]), 409),
            (await maria.get(f"{path}/{then}"), 200),
        ):
            assert page.status == status
            assert "This is no longer possible: the status is" in page.html
        assert await again(api, plural, one) == before


async def test_conflicts_are_told(maria: Guest, api: Person) -> None:
    quote = await made(api, "quotes", items=ITEMS, validUntil="2020-01-01")
    page = await maria.submit(f"/console/quotes/{quote['id']}/send")
    assert page.status == 409
    assert "This quote would expire at once; set a later validity first." in page.html
    other = await made(api, "quotes", items=ITEMS)
    await api.post(f"/api/quotes/{other['id']}/accept")
    form = await maria.get(f"/console/quotes/{other['id']}/convert")
    await api.post(f"/api/quotes/{other['id']}/convert", {})
    page = await maria.post(f"/console/quotes/{other['id']}/convert", [("csrf_token", form.csrf)])
    assert page.status == 409
    assert "This quote already has an invoice." in page.html
    assert (await api.get("/api/invoices")).body["total"] == 1


async def test_tasks_are_done_in_the_list_and_on_their_page(maria: Guest, api: Person) -> None:
    task = await made(api, "tasks", title="Call back")
    page = await maria.get("/console/tasks?completed=false")
    assert offered(page, task) == ["complete"]
    path = f"/console/tasks/{task['id']}"
    page = await maria.submit(f"{path}/complete", at="/console/tasks", list="completed=false")
    assert page.path == "/console/tasks?completed=false&done=task_complete"
    assert (await again(api, "tasks", task))["completed"] is True
    page = await maria.submit(f"{path}/reopen", at=path)
    assert page.path == f"{path}?done=task_reopen"
    assert offered(page, task) == ["complete"]
    # The list of a form is no way out of the console.
    for elsewhere in ("//evil.example", "a\r\nb", "#x"):
        page = await maria.submit(f"{path}/complete", at="/console/tasks", list=elsewhere)
        assert page.path.startswith("/console/tasks?")


async def test_a_deal_is_won_lost_and_reopened_on_its_page(maria: Guest, api: Person) -> None:
    deal = await made(api, "deals", title="Supply", value=10)
    path = f"/console/deals/{deal['id']}"
    assert offered(await maria.get(path), deal) == ["win", "lose"]
    page = await maria.submit(f"{path}/lose", lostReason="Price")
    assert page.path == f"{path}?done=deal_lose"
    after = await again(api, "deals", deal)
    assert (after["status"], after["lostReason"]) == ("lost", "Price")
    assert offered(page, deal) == ["reopen", "win"]
    page = await maria.submit(f"{path}/reopen", at=path)
    assert (await again(api, "deals", deal))["status"] == "open"
