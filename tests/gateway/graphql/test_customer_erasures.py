"""A customer who erases the account: what of the store is the customer's, and what of others."""

from typing import Any

from gateway.domain.storefront.carts import changes
from gateway.domain.storefront.checkouts.checkout import checkout, read_input
from gateway.domain.storefront.checkouts.repeats import Tokens
from gateway.records.errors import Refusal
from gateway.records.values.global_ids import record_id
from gateway.server.app_keys import KEYRING
from outbox.database.transaction import Tx
from tests.gateway.graphql.test_late_writers import between, customer_of, erase
from tests.gateway.graphql.test_person_erasures import EMAIL, rows, run
from tests.support.carts import sell
from tests.support.checkouts import BUYER, PASSWORD, bought, sign_up
from tests.support.shop import Browser, Shop

RUI = "rui@example.com"


async def proven(shop: Shop) -> tuple[Browser, str]:
    """Return a new customer with a proven email, and the id of the customer's contact."""
    browser = shop.browser()
    await sign_up(browser)
    await rows(shop, "update customers set email_verified = true returning id")
    [made] = await rows(shop, "select contact_id from customers")
    return browser, str(made["contact_id"])


async def leave(browser: Browser) -> None:
    """Erase the account of the browser's customer."""
    assert (await browser.do("clientDeleteAccount", "success", password=PASSWORD)).data


async def test_guest_orders_go_without_the_contact_that_the_owner_deleted(shop: Shop) -> None:
    await bought(shop)
    browser, contact_id = await proven(shop)
    assert (await shop.owner.delete(f"/api/contacts/{contact_id}")).status == 200
    # Another order as a guest makes another contact, which is not the account's.
    await bought(shop)
    await leave(browser)
    await run(shop)
    orders = await rows(shop, "select name, email, contact_id from orders")
    found = {(row["name"], row["email"], row["contact_id"]) for row in orders}
    assert found == {("Erased customer", "erased@invalid.invalid", None)}
    assert await rows(shop, "select email from contacts") == []
    [certificate] = (await shop.owner.get("/api/erasures")).body["data"]
    assert certificate["erased"]["contacts"] == 1
    assert len(certificate["recordIds"]) == 2


async def test_a_contact_that_became_another_persons_stays_with_the_orders(shop: Shop) -> None:
    """The owner gives the contact of a customer the email of somebody else, who then orders."""
    browser, contact_id = await proven(shop)
    path = f"/api/contacts/{contact_id}"
    assert (await shop.owner.put(path, {"name": "Rui", "email": RUI})).status == 200
    _, order = await bought(shop, email=RUI, name="Rui")
    kept: list[Any] = [
        (await shop.owner.get(one)).body for one in (path, f"/api/orders?number={order['number']}")
    ]
    await leave(browser)
    await run(shop)
    assert kept == [
        (await shop.owner.get(one)).body for one in (path, f"/api/orders?number={order['number']}")
    ]
    assert kept[1]["data"][0]["email"] == RUI
    # The owner hears of it, because the contact may hold more of the customer.
    [note] = (await shop.owner.get(f"/api/activities?relatedId={contact_id}")).body["data"]
    assert "erased their account" in note["description"]
    assert await rows(shop, "select id from customers") == []


async def test_a_contact_with_the_email_goes_beside_one_that_has_another(shop: Shop) -> None:
    browser, contact_id = await proven(shop)
    assert (await shop.owner.put(f"/api/contacts/{contact_id}", {"email": RUI})).status == 200
    await bought(shop)
    await leave(browser)
    await run(shop)
    assert [row["email"] for row in await rows(shop, "select email from contacts")] == [RUI]
    [order] = await rows(shop, "select email from orders")
    assert order["email"] != EMAIL


async def test_an_email_without_a_proof_reaches_no_contact_but_its_own(shop: Shop) -> None:
    browser = shop.browser()
    await sign_up(browser)
    [made] = await rows(shop, "select contact_id from customers")
    assert (await shop.owner.delete(f"/api/contacts/{made['contact_id']}")).status == 200
    await bought(shop)
    await leave(browser)
    await run(shop)
    assert [row["email"] for row in await rows(shop, "select email from orders")] == [EMAIL]
    assert [row["email"] for row in await rows(shop, "select email from contacts")] == [EMAIL]
    assert await rows(shop, "select id from activities where description like '%erased%'") == []


async def test_a_checkout_at_the_same_time_is_erased_or_refused(shop: Shop) -> None:
    product_id = record_id(await sell(shop, 30, stock=10), "Product", "id")
    visitor = await customer_of(shop)
    ring = shop.api.site.app[KEYRING]

    async def fill(tx: Tx) -> None:
        await changes.add(tx, visitor, product_id, 1, limiting=True)

    await shop.db.write(fill)

    async def order(tx: Tx) -> Any:
        return await checkout(tx, visitor, read_input(BUYER), Tokens("access", "cart"), ring, 3)

    outcome = await between(shop, "insert into orders", order, lambda: erase(shop, visitor))
    await run(shop)
    orders = await rows(shop, "select name, email, customer_id from orders")
    if shop.db.engine == "sqlite":
        assert isinstance(outcome, Refusal)
        assert (outcome.code, orders) == ("unauthenticated", [])
    else:
        [made] = orders
        assert (made["name"], made["customer_id"]) == ("Erased customer", None)
        assert EMAIL not in made["email"]
    assert await rows(shop, "select id from carts") == []
