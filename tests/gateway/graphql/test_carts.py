"""The cart of a visitor: its lines and totals, its limits, and whom it belongs to."""

import json
import re
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.domain.storefront.carts import looks
from gateway.domain.storefront.carts.rows import LIFETIME, Cart
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.server.storefront import STOREFRONT
from outbox.database.transaction import Database, Row, Tx
from outbox.durations import DAY
from tests.support.carts import EMPTY, cart, change, sell
from tests.support.raw_requests import send
from tests.support.shop import Answer, Shop, open_shop
from tests.support.tables import in_turn


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


async def test_a_page_of_one_store_neither_learns_nor_chooses_the_cart_of_another(
    shop: Shop,
) -> None:
    """Stores may share a host: its cookies reach it whatever store a request names."""
    elsewhere = await open_shop(shop.api, "other.example")
    browser, query = shop.browser(), "query ($h: String!) { shoppingCart(hostname: $h) { id } }"
    mine = (await browser.send(query, {"h": shop.hostname})).headers["X-Cart-Session"]
    learned = (await browser.send(query, {"h": "other.example"})).headers["X-Cart-Session"]
    assert learned != mine
    chosen = await browser.send(query, {"h": shop.hostname})
    assert chosen.headers["X-Cart-Session"] not in (mine, learned)
    # A page whose token is in the header keeps its cart.
    answer = await browser.send(query, {"h": "other.example"}, X_Cart_Session=learned)
    assert "X-Cart-Session" not in answer.headers
    await elsewhere.close()


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


@in_turn("token", ["", "a", "a" * 42, "a" * 44, "a" * 43, "é" * 43, "a" * 42 + "="])
async def test_a_token_that_the_store_did_not_make_is_replaced(shop: Shop, token: str) -> None:
    query = "query ($h: String!) { shoppingCart(hostname: $h) { id } }"
    headers: dict[str, Any] = {"Cookie": f"cartSession={token}"}
    answer = await shop.browser().send(query, {"h": shop.hostname}, **headers)
    assert re.fullmatch(r"[\w-]{43}", answer.headers["X-Cart-Session"])


@in_turn(
    "tail",
    [b"", b".", b"x", b"\xff", b"\x80\xbf", b"\\177", "é".encode(), b"a.b", b"x" * 4000,
     b"a." + b"0" * 23, b"a." + b"0" * 25, b"A." + b"0" * 24, b"a." + b"0" * 23 + b"\xff",
     b"a." + b"0" * 24 + b".", b"a" * 17 + b"." + b"0" * 24, b"\\012", b"\\000", b"\\377",
     b"a." + b"0" * 24 + b"\\012", b"\\015\\012Set-Cookie: a=b"],
)  # fmt: skip
async def test_a_token_with_a_tail_that_is_no_mark_is_replaced(shop: Shop, tail: bytes) -> None:
    query = "query ($h: String!) { shoppingCart(hostname: $h) { id } }"
    mine = (await shop.browser().send(query, {"h": shop.hostname})).headers["X-Cart-Session"]
    # A change stores the cart; its response has the token.
    document = (
        f'mutation {{ shoppingCartAddProduct(input: {{hostname: "{shop.hostname}", productId: '
        f'"{await sell(shop)}"}}) {{ shoppingCart {{ totalQuantity }} }} }}'
    )
    body = json.dumps({"query": document}).encode()
    token = mine.encode() + b"." + tail
    for line in (
        b"X-Cart-Session: " + token, b"Cookie: cartSession=" + token,
        b'Cookie: cartSession="' + token + b'"',
    ):  # fmt: skip
        kind = b"Content-Type: application/json"
        answer = await send(shop.api.site.port, b"POST /graphql", kind, line, body=body)
        assert answer.body["data"]["shoppingCartAddProduct"] == {
            "shoppingCart": {"totalQuantity": 1},
        }  # fmt: skip
        assert re.fullmatch(r"[\w-]{43}", answer.headers["X-Cart-Session"])
        assert answer.headers["X-Cart-Session"] != mine


async def test_a_token_keeps_its_mark(shop: Shop) -> None:
    query = "query ($h: String!) { shoppingCart(hostname: $h) { id } }"
    mine = (await shop.browser().send(query, {"h": shop.hostname})).headers["X-Cart-Session"]
    headers: dict[str, Any] = {"Cookie": f"cartSession={mine}.eu-1.{'0' * 24}"}
    answer = await shop.browser().send(query, {"h": shop.hostname}, **headers)
    assert "X-Cart-Session" not in answer.headers


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_looks_of_so_many_visitors_wait_at_most(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "MOST", 2)
    waiting, cart_of_one = looks.Looks(db), SimpleNamespace(id="c" * 24, touched_at=1)

    def look(token: str, total: int) -> None:
        visitor = SimpleNamespace(store=SimpleNamespace(id="s"), customer_id=None, cart_token=token)
        waiting.showed(cast("Shopper", visitor), cast("Cart", cart_of_one), total)

    for number, token in enumerate("abca"):
        look(token, number)
    assert {token: one.total for (_, token), one in waiting.waiting.items()} == {"a": 3, "b": 1}
    await waiting.settle_all()
    assert waiting.waiting == {}


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
    await shop.api.site.app[STOREFRONT].looks.settle_all()
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
