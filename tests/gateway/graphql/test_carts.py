"""The cart of a visitor: its lines and totals, its limits, and whom it belongs to."""

import asyncio
import json
import re
from typing import Any

import pytest

from gateway.domain.storefront.carts.rows import LIFETIME
from gateway.graphql.ids import global_id
from outbox.database.transaction import Row, Tx
from outbox.durations import DAY
from tests.support.carts import EMPTY, cart, change, do, edit, sell
from tests.support.shop import Answer, Shop


async def rows(tx: Tx) -> list[Row]:
    return await tx.all("select * from carts order by created_at, id")


def refused(answer: Answer, code: str, field: str) -> None:
    extensions = answer.error["extensions"]
    assert (extensions["code"], extensions.get("field")) == (code, field)
    assert next(iter(answer.body["data"].values())) is None


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
    contents = await cart(browser)
    cart_id = contents.pop("id")
    assert contents == EMPTY
    # The same visitor has the same cart from the first look on.
    assert cart_id == answer.data["shoppingCart"]["id"]
    payload = await change(browser, "AddProduct", productId=await sell(shop))
    assert payload["shoppingCart"]["id"] == cart_id
    [row] = await shop.db.read(rows)
    assert token not in repr([row[name] for name in row.keys()])  # noqa: SIM118 - no mapping


async def test_a_line_is_changed_and_removed_by_its_id_or_its_product(shop: Shop) -> None:
    coffee, tea = await sell(shop), await sell(shop, 5, name="Tea")
    browser = shop.browser()
    await change(browser, "AddProduct", productId=coffee)
    payload = await change(browser, "AddProduct", productId=tea)
    lines = {line["productId"]: line["id"] for line in payload["shoppingCart"]["products"]}
    payload = await change(browser, "UpdateProduct", id=lines[coffee], quantity=7)
    assert [p["quantity"] for p in payload["shoppingCart"]["products"]] == [7, 1]
    payload = await change(browser, "UpdateProduct", id=tea, quantity=3)
    assert payload["shoppingCart"]["totalPrice"] == 7 * 8990 + 3 * 500
    payload = await change(browser, "UpdateProduct", id=lines[coffee], quantity=0)
    assert [p["productId"] for p in payload["shoppingCart"]["products"]] == [tea]
    payload = await change(browser, "RemoveProduct", id=tea)
    assert payload["shoppingCart"]["products"] == []
    refused(await do(browser, "RemoveProduct", id=tea), "PRODUCT_NOT_FOUND", "id")
    refused(await do(browser, "UpdateProduct", id=tea, quantity=1), "PRODUCT_NOT_FOUND", "id")
    refused(await do(browser, "RemoveProduct", id="tea"), "BAD_USER_INPUT", "id")


@pytest.mark.parametrize(
    ("quantity", "code"),
    [(0, "BAD_USER_INPUT"), (-1, "BAD_USER_INPUT"), (1000, "QUANTITY_LIMIT")],
)
async def test_an_add_takes_1_to_999_items(shop: Shop, quantity: int, code: str) -> None:
    browser, product = shop.browser(), await sell(shop)
    refused(await do(browser, "AddProduct", productId=product, quantity=quantity), code, "quantity")
    assert await shop.db.read(rows) == []


async def test_a_line_has_at_most_999_items(shop: Shop) -> None:
    browser, product = shop.browser(), await sell(shop, 1)
    await change(browser, "AddProduct", productId=product, quantity=999)
    one_more = await do(browser, "AddProduct", productId=product)
    refused(one_more, "QUANTITY_LIMIT", "quantity")
    for quantity, code in ((1000, "QUANTITY_LIMIT"), (-1, "BAD_USER_INPUT")):
        answer = await do(browser, "UpdateProduct", id=product, quantity=quantity)
        refused(answer, code, "quantity")
    assert (await cart(browser))["totalQuantity"] == 999


@pytest.mark.slow
async def test_a_cart_has_at_most_100_lines(shop: Shop) -> None:
    browser = shop.browser()
    products = [await sell(shop, 1, name=f"P{n}") for n in range(101)]
    for product in products[:100]:
        await change(browser, "AddProduct", productId=product)
    refused(await do(browser, "AddProduct", productId=products[100]), "QUANTITY_LIMIT", "productId")
    # One more of a product that is there is no further line.
    payload = await change(browser, "AddProduct", productId=products[7])
    assert payload["shoppingCart"]["totalQuantity"] == 101
    # A line that the store no longer sells makes room.
    await edit(shop, products[0], published=False)
    payload = await change(browser, "AddProduct", productId=products[100])
    assert len(payload["shoppingCart"]["products"]) == 100


async def test_the_total_stays_within_what_an_invoice_can_hold(shop: Shop) -> None:
    browser, product = shop.browser(), await sell(shop, 999999999999.99)
    await change(browser, "AddProduct", productId=product)
    refused(await do(browser, "AddProduct", productId=product), "QUANTITY_LIMIT", "quantity")


@pytest.mark.parametrize("column", ["published", "active", "store_id"])
async def test_only_products_that_the_store_sells_can_be_added(shop: Shop, column: str) -> None:
    product, browser = await sell(shop), shop.browser()
    await edit(shop, product, **{column: None if column == "store_id" else False})
    refused(await do(browser, "AddProduct", productId=product), "PRODUCT_NOT_FOUND", "productId")
    none = global_id("Product", "0" * 24)
    refused(await do(browser, "AddProduct", productId=none), "PRODUCT_NOT_FOUND", "productId")
    malformed = await do(browser, "AddProduct", productId="0" * 24)
    refused(malformed, "BAD_USER_INPUT", "productId")
    other_kind = global_id("Store", product)
    refused(await do(browser, "AddProduct", productId=other_kind), "BAD_USER_INPUT", "productId")


async def test_the_newest_version_limits_an_add_to_the_stock(shop: Shop) -> None:
    product, browser = await sell(shop, 1, stock=3), shop.browser()
    payload = await change(browser, "AddProduct", productId=product, quantity=5)
    [warning] = payload["warnings"]
    assert (warning["code"], warning["productId"]) == ("QUANTITY_LIMITED", product)
    assert payload["shoppingCart"]["totalQuantity"] == 3
    payload = await change(browser, "AddProduct", productId=product)
    assert [w["code"] for w in payload["warnings"]] == ["QUANTITY_LIMITED"]
    assert payload["shoppingCart"]["totalQuantity"] == 3
    payload = await change(browser, "UpdateProduct", id=product, quantity=4)
    assert [w["code"] for w in payload["warnings"]] == ["QUANTITY_LIMITED"]
    # The warning belongs to the mutation: the cart itself is as the stock allows.
    assert (await cart(browser))["warnings"] == []
    # None left cannot be limited to some.
    none = await sell(shop, 1, stock=0)
    refused(await do(browser, "AddProduct", productId=none), "INSUFFICIENT_STOCK", "quantity")


async def test_a_product_that_is_gone_takes_its_line_with_it(shop: Shop) -> None:
    remaining, gone, browser = await sell(shop, 1), await sell(shop, 2), shop.browser()
    for product in (remaining, gone):
        await change(browser, "AddProduct", productId=product)
    await edit(shop, gone, active=False)
    contents = await cart(browser)
    assert [line["productId"] for line in contents["products"]] == [remaining]
    assert contents["totalPrice"] == 100
    assert [(w["code"], w["productId"]) for w in contents["warnings"]] == [
        ("PRODUCT_UNAVAILABLE", gone)
    ]
    refused(await do(browser, "UpdateProduct", id=gone, quantity=2), "PRODUCT_NOT_FOUND", "id")
    payload = await change(browser, "AddProduct", productId=remaining)
    assert [w["code"] for w in payload["warnings"]] == ["PRODUCT_UNAVAILABLE"]
    # Told once, it stays out even when the store sells it again.
    await edit(shop, gone, active=True)
    contents = await cart(browser)
    assert ([line["productId"] for line in contents["products"]], contents["warnings"]) == (
        [remaining],
        [],
    )


async def test_the_header_names_the_cart_where_cookies_do_not_travel(shop: Shop) -> None:
    browser, query = shop.browser(), "query ($h: String!) { shoppingCart(hostname: $h) { id } }"
    product = await sell(shop)
    first = await shop.browser().send(query, {"h": shop.hostname})
    token = first.headers["X-Cart-Session"]
    document = """
    mutation ($input: ShoppingCartAddProductMutationInput!) {
      shoppingCartAddProduct(input: $input) { shoppingCart { id totalQuantity } } }
    """
    for quantity in (1, 2):
        added = await shop.browser().send(
            document,
            {"input": {"hostname": shop.hostname, "productId": product}},
            X_Cart_Session=token,
        )
        contents = added.data["shoppingCartAddProduct"]["shoppingCart"]
        assert contents == {**first.data["shoppingCart"], "totalQuantity": quantity}
    assert (await cart(browser))["products"] == []


@pytest.mark.parametrize("token", ["", "a", "a" * 42, "a" * 44, "a" * 43, "é" * 43, "a" * 42 + "="])
async def test_a_token_that_the_store_did_not_make_is_replaced(shop: Shop, token: str) -> None:
    query = "query ($h: String!) { shoppingCart(hostname: $h) { id } }"
    headers: dict[str, Any] = {"Cookie": f"cartSession={token}"}
    answer = await shop.browser().send(query, {"h": shop.hostname}, **headers)
    assert re.fullmatch(r"[\w-]{43}", answer.headers["X-Cart-Session"])


@pytest.mark.parametrize("header", [b"Cookie: cartSession=", b"X-Cart-Session: "])
async def test_bytes_that_are_no_text_name_no_cart(shop: Shop, header: bytes) -> None:
    values = f'hostname: "{shop.hostname}", name: "Maria", email: "m@example.com"'
    document = f'mutation {{ clientSignup(input: {{{values}, password: "secret1"}}) {{ token }} }}'
    body = json.dumps({"query": document}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", shop.api.site.port)
    writer.write(
        b"POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Connection: close\r\n%s\xff\r\nContent-Length: %d\r\n\r\n%s" % (header, len(body), body)
    )
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["data"]["clientSignup"]["token"]


async def test_a_cart_lives_for_a_week_after_its_last_use(shop: Shop) -> None:
    browser, product = shop.browser(), await sell(shop)
    await change(browser, "AddProduct", productId=product)

    async def age(tx: Tx, days: int) -> None:
        sql = "update carts set touched_at = touched_at - $1, expires_at = expires_at - $1"
        await tx.run(sql, days * DAY)

    query = "query ($h: String!) { shoppingCart(hostname: $h) { totalQuantity } }"
    answer = await browser.send(query, {"h": shop.hostname})
    assert answer.cookies == {}
    await shop.db.write(age, 6)
    answer = await browser.send(query, {"h": shop.hostname})
    assert answer.data["shoppingCart"]["totalQuantity"] == 1
    # A look prolongs it, and the cookie with it.
    assert "Max-Age=2592000" in answer.cookies["cartSession"]
    [row] = await shop.db.read(rows)
    assert row["expires_at"] - row["touched_at"] == LIFETIME
    await shop.db.write(age, 6)
    assert (await cart(browser))["totalQuantity"] == 1
    await shop.db.write(age, 8)
    assert (await cart(browser))["totalQuantity"] == 0
    # Nobody has swept yet: the next change begins a new cart under the same token.
    payload = await change(browser, "AddProduct", productId=product)
    assert payload["shoppingCart"]["totalQuantity"] == 1
    assert len(await shop.db.read(rows)) == 1
