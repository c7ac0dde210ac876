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


async def test_an_order_is_canceled_once(maria: Guest) -> None:
    shop = await shop_of(maria)
    sale = await order(shop)
    path = f"{ORDERS}/{sale['id']}/cancel"
    asked = await maria.get(path)
    assert "cannot be undone" in asked.html
    assert sale["number"] in asked.html
    refused = await maria.submit(path, reason="a\x00b")
    assert (refused.status, 'id="reason-fault"' in refused.html) == (400, True)
    assert (await orders.order_of(shop.owner, sale["id"]))["status"] == "pending"
    page = await maria.submit(path, reason=" Ordered <twice> ")
    assert page.path == f"{ORDERS}/{sale['id']}?done=order_canceled"
    assert "Ordered &lt;twice&gt;" in page.html
    assert "Cancel order" not in page.html
    again = await maria.submit(path)
    assert again.path == f"{ORDERS}/{sale['id']}?done=order_canceled"
    after = await orders.order_of(shop.owner, sale["id"])
    assert (after["status"], after["reason"]) == ("canceled", "Ordered <twice>")
    assert await orders.stock_of(shop.owner, after["items"][0]["productId"]) == 10


async def test_a_review_is_approved_and_rejected(maria: Guest) -> None:
    shop = await shop_of(maria)
    review_id = await review(shop, "<b>Good</b> \u202e beans", reviewModeration=True)
    listed = await maria.get(f"{REVIEWS}?status=pending")
    for text in ("&lt;b&gt;Good", "⟨202E⟩", "Beans &lt;1 kg&gt;", "Ana &lt;i&gt;", "4 of 5 stars"):
        assert text in listed.html, text
    path = f"{REVIEWS}/{review_id}"

    async def status() -> str:
        return str((await shop.owner.get(f"/api/reviews/{review_id}")).body["status"])

    page = await maria.submit(
        f"{path}/publish", at=f"{REVIEWS}?status=pending", list="status=pending"
    )
    assert page.path == f"{REVIEWS}?status=pending&done=review_published"
    assert ("Review approved." in page.html, await status()) == (True, "published")
    page = await maria.submit(f"{path}/reject", at=path)
    assert (page.path, await status()) == (f"{path}?done=review_rejected", "rejected")
    assert (page.html.count("/publish"), page.html.count("/reject")) == (1, 0)
    page = await maria.submit(f"{path}/publish", at=path, list="#nowhere")
    assert page.path == f"{REVIEWS}?done=review_published"
    review_id = await review(shop, "é" * 5_000)
    assert "A long text" in (await maria.get(REVIEWS)).html
    assert "é" * 5_000 in (await maria.get(f"{REVIEWS}/{review_id}")).html
