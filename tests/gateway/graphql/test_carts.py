"""The cart of a visitor: lines, totals, cookies."""

import re

from outbox.database.transaction import Row, Tx
from tests.support.carts import EMPTY, cart, change, sell
from tests.support.shop import Shop


async def rows(tx: Tx) -> list[Row]:
    return await tx.all("select * from carts order by created_at, id")


async def test_a_new_visitor_gets_an_empty_cart_and_a_cookie_but_no_row(shop: Shop) -> None:
    browser = shop.browser()
    query = "query ($h: String!) { shoppingCart(hostname: $h) { id totalPrice products { id } } }"
    answer = await browser.send(query, {"h": "shop.example"})
    assert answer.data["shoppingCart"]["products"] == []
    line = answer.cookies["cartSession"]
    assert re.fullmatch(
        r"cartSession=[\w-]{43}; HttpOnly; Max-Age=2592000; Path=/; SameSite=Lax", line
    )
    token = answer.headers["X-Cart-Session"]
    assert line.startswith(f"cartSession={token};")
    assert await shop.db.read(rows) == []
    found = await cart(browser)
    kept = found.pop("id")
    assert found == EMPTY
    # The same visitor has the same cart from the first look on.
    assert kept == answer.data["shoppingCart"]["id"]
    product = await sell(shop)
    payload = await change(browser, "AddProduct", productId=product)
    assert payload["shoppingCart"]["id"] == kept
    [row] = await shop.db.read(rows)
    assert token.encode() not in b"".join(str(row[name]).encode() for name in row.keys())  # noqa: SIM118 - rows are no mappings


async def test_add_shows_the_line_with_its_product_and_the_totals(shop: Shop) -> None:
    images = [{"url": "https://shop.example/1.jpg", "alt": "A bag"}]
    coffee = await sell(shop, 89.9, images=images)
    tea = await sell(shop, 0.01, name="Tea")
    browser = shop.browser()
    await change(browser, "AddProduct", productId=coffee)
    await change(browser, "AddProduct", productId=coffee, quantity=2)
    payload = await change(browser, "AddProduct", productId=tea)
    assert payload["warnings"] == []
    found = payload["shoppingCart"]
    assert found == await cart(browser)
    assert found["totalPrice"] == found["total"] == 3 * 8990 + 1
    assert found["totalQuantity"] == 4
    first, second = found["products"]
    assert first.pop("id") != second["id"]
    assert first == {
        "productId": coffee,
        "title": "Coffee beans",
        "price": 8990,
        "quantity": 3,
        "available": True,
        "images": images,
    }
    assert second["title"] == "Tea"
