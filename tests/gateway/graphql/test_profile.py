"""What customers do with their own accounts, and that nobody reaches another's."""

import json
from typing import Any

from outbox.database.transaction import Tx
from tests.gateway.graphql.test_accounts import ANA, log_in, sign_up
from tests.support.carts import sell
from tests.support.checkouts import put
from tests.support.operations import operation
from tests.support.shop import Answer, Browser, Shop
from tests.support.tables import in_turn

ADDRESS = {
    "street": "Avenida Paulista", "number": "1578", "city": "São Paulo", "state": "sp",
    "cep": "01310-200",
}  # fmt: skip
FIELDS = "id name street number complement district city state cep"


async def save(browser: Browser, **values: Any) -> Answer:
    selection = f"address {{ {FIELDS} }} addresses {{ id }}"
    return await browser.do("clientAddressSave", selection, **(ADDRESS | values))


async def erase(browser: Browser, **values: Any) -> Answer:
    return await browser.do("clientDeleteAccount", "success", **values)


async def verified(tx: Tx) -> None:
    await tx.run("update customers set email_verified = true")


async def test_an_unproven_email_deletes_no_contact(shop: Shop) -> None:
    browser = shop.browser()
    await sign_up(browser)
    await erase(browser, password=ANA["password"])
    [contact] = (await shop.owner.get("/api/contacts")).body["data"]
    assert contact["tags"] == ["customer"]
    path = f"/api/activities/entity/{contact['id']}"
    [note] = (await shop.owner.get(path)).body["data"]
    assert "erased" in note["description"]


@in_turn("blanks", [" " * 6, " " * 128, "\u3000" * 6, "\u00a0 " * 3])
async def test_a_password_of_blanks_deletes_its_account(shop: Shop, blanks: str) -> None:
    browser = shop.browser()
    assert (await sign_up(browser, password=blanks)).data
    assert (await log_in(browser, password=blanks)).data
    for wrong in ("", None, " ", f"{blanks} ", blanks[1:], "\t" * 6, "a" + blanks):
        answer = await erase(browser, password=wrong)
        assert answer.code == "INVALID_CREDENTIALS"
        assert answer.error["extensions"]["field"] == "password"
    assert (await erase(browser, password=blanks)).data


async def test_a_contact_that_the_owner_made_stays(shop: Shop) -> None:
    body = {"name": "Ana", "email": "ana@example.com", "tags": ["vip"], "consent": True}
    await shop.owner.post("/api/contacts", body)
    browser = shop.browser()
    await sign_up(browser)
    await shop.db.write(verified)
    await erase(browser, password=ANA["password"])
    [contact] = (await shop.owner.get("/api/contacts")).body["data"]
    assert (contact["tags"], contact["consent"]) == (["vip"], False)


async def test_a_contact_with_an_account_elsewhere_stays(shop: Shop) -> None:
    other = {"hostname": "other.example", "name": "Other"}
    assert (await shop.owner.post("/api/stores", other)).status == 201
    browser = shop.browser()
    await sign_up(browser)
    await sign_up(shop.browser(), hostname="other.example")
    await shop.db.write(verified)
    await erase(browser, password=ANA["password"])
    [contact] = (await shop.owner.get("/api/contacts")).body["data"]
    assert contact["tags"] == ["customer"]


async def test_orders_and_reviews_lose_the_person(shop: Shop) -> None:
    product = await sell(shop, 89.9, stock=5)
    browser = shop.browser()
    await sign_up(browser)
    await put(browser, product)
    document, variables = operation("checkout")
    variables["input"]["hostname"] = shop.hostname
    assert (await browser.send(document, variables)).data["checkout"]["order"]
    review = {"productId": product, "stars": 5, "text": "Bom."}
    assert (await browser.do("createReview", "review { id }", **review)).data
    exported = await browser.do("clientExportData", "data")
    data = json.loads(exported.data["clientExportData"]["data"])
    assert [order["email"] for order in data["orders"]] == ["maria@example.com"]
    assert [one["text"] for one in data["reviews"]] == ["Bom."]
    await erase(browser, password=ANA["password"])
    [order] = (await shop.owner.get("/api/orders")).body["data"]
    assert (order["name"], order["total"]) == ("Erased customer", 89.9)
    assert order["document"] == "52998224725"
    gone = {"customerId", "phone", "address", "notes", "contactId"}
    assert not gone & order.keys()
    assert "maria" not in json.dumps(order)
    # A search by the name no longer finds it.
    assert (await shop.owner.get("/api/orders?search=maria")).body["total"] == 0
    [kept] = (await shop.owner.get("/api/reviews")).body["data"]
    assert (kept["text"], "author" in kept, "customerId" in kept) == ("Bom.", False, False)
