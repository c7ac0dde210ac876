"""The verbs of records in the console: offered by state, the same units, refusals in a sentence."""

from typing import Any

from tests.support.console import Guest, Seen
from tests.support.rest import Person

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
