"""Orders and reviews in the console: shown to their owner, canceled and moderated."""

from typing import Any

from gateway.records.values.global_ids import global_id
from outbox.database.transaction import Row, Tx
from tests.support import orders
from tests.support.console import Guest
from tests.support.rest import RestApi
from tests.support.shop import Shop

ORDERS, REVIEWS = "/console/orders", "/console/reviews"


async def shop_of(guest: Guest, hostname: str = "shop.example") -> Shop:
    """Return a store of Maria."""

    async def unit(tx: Tx) -> Row:
        row = await tx.one("select id from users where email = 'maria@example.com'")
        assert row is not None
        return row

    api = RestApi(guest.site)
    owner = await api.key_of((await guest.site.db.read(unit))["id"])
    store = await owner.post("/api/stores", {"hostname": hostname, "name": "Coffee Shop"})
    assert store.status == 201, store.text
    return Shop(api, owner, store.body)


async def order(shop: Shop, quantity: int = 2) -> dict[str, Any]:
    product = await orders.product(shop.owner, storeId=shop.store["id"], name="Beans <1 kg>")
    return await orders.placed(shop, {product: quantity}, shipping=1550, discount=500)


async def review(shop: Shop, text: str = "Good.", **store: Any) -> str:
    """Let a customer review a product; return the review's id."""
    if store:
        await shop.owner.put(f"/api/stores/{shop.store['id']}", store)
    body = {"name": "Beans <1 kg>", "price": 10, "storeId": shop.store["id"]}
    product = (await shop.owner.post("/api/products", body)).body
    browser = shop.browser()
    email = f"ana{product['id']}@example.com"
    signed = await browser.do(
        "clientSignup", "token", name="Ana <i>", email=email, password="segredo-1"
    )
    assert signed.data
    answer = await browser.do(
        "createReview",
        "review { id }",
        productId=global_id("Product", product["id"]),
        stars=4,
        text=text,
    )
    assert answer.data
    await browser.close()
    return str((await shop.owner.get("/api/reviews?limit=1")).body["data"][0]["id"])


async def test_a_reason_that_no_database_stores(maria: Guest) -> None:
    shop = await shop_of(maria)
    sale = await order(shop)
    page = await maria.submit(f"{ORDERS}/{sale['id']}/cancel", reason="a\x00b")
    assert page.status == 400
    assert 'id="reason-fault"' in page.html
    assert (await orders.order_of(shop.owner, sale["id"]))["status"] == "pending"


async def test_a_long_review_is_listed_too(maria: Guest) -> None:
    shop = await shop_of(maria)
    review_id = await review(shop, "é" * 5_000)
    listed = await maria.get(REVIEWS)
    assert "A long text" in listed.html
    assert "é" * 5_000 in (await maria.get(f"{REVIEWS}/{review_id}")).html
