"""Requests at once, and repeats: one order per cart, no use too many, no change lost."""

import asyncio
from collections import Counter
from typing import Any

from gateway.records.values.global_ids import record_id
from outbox.database.transaction import Row, Tx
from tests.gateway.graphql.test_carts import refused
from tests.support.carts import cart, change, do, edit, sell
from tests.support.checkouts import BUYER, check_out, coupon, put
from tests.support.shop import Answer, Browser, Shop

STOCK = 10
LATE = ("EXECUTION_TIMEOUT", "OUTCOME_UNKNOWN", "UNAVAILABLE")
"""Answers of a busy server, after which a client sends the same again."""
TRIES = 50


async def one_cart(shop: Shop, tries: int = 4) -> list[str]:
    """Check out one cart several times at once; exactly one order may come of it."""
    browser = shop.browser()
    product = await sell(shop, 30, stock=STOCK)
    await put(browser, product, 2)
    answers = await asyncio.gather(*(_buy(browser, idempotencyKey=f"k{n}") for n in range(tries)))
    await browser.close()
    found = _outcomes(answers)
    return [
        *_differs("outcomes", found, {"ordered": 1, "CART_EMPTY": tries - 1}),
        *_differs("orders", len(await _orders(shop, product)), 1),
        *_differs("stock", await _stock(shop, product), STOCK - 2),
    ]


async def hundred_buyers(shop: Shop, buyers: int = 100) -> list[str]:
    """Let buyers order one item each of ten; exactly ten get it."""
    product = await sell(shop, 30, stock=STOCK)
    browsers = [shop.browser() for _ in range(buyers)]
    for browser in browsers:
        await put(browser, product)
    answers = await asyncio.gather(*(_buy(browser) for browser in browsers))
    await _close(browsers)
    found = _outcomes(answers)
    return [
        *_differs("outcomes", found, {"ordered": STOCK, "INSUFFICIENT_STOCK": buyers - STOCK}),
        *_differs("orders", len(await _orders(shop, product)), STOCK),
        *_differs("stock", await _stock(shop, product), 0),
    ]


async def coupon_with_one_use(shop: Shop, buyers: int = 4) -> list[str]:
    """Let buyers with one coupon in their carts order at once; exactly one uses it."""
    product = await sell(shop, 30, stock=STOCK)
    code = f"ONE-{record_id(product, 'Product', 'id')}"
    found_id = await coupon(shop, code, maxUses=1)
    browsers = [shop.browser() for _ in range(buyers)]
    for browser in browsers:
        await put(browser, product)
        await change(browser, "ApplyCoupon", code=code)
    answers = await asyncio.gather(
        *(_buy(browser, email=f"b{n}@example.com") for n, browser in enumerate(browsers))
    )
    await _close(browsers)
    outcomes = _outcomes(answers)
    used = [order for order in await _orders(shop, product) if order["discount"]]
    uses = (await shop.owner.get(f"/api/coupons/{found_id}")).body["uses"]
    return [
        *_differs("outcomes", outcomes, {"ordered": 1, "COUPON_USAGE_LIMIT": buyers - 1}),
        *_differs("orders with a discount", len(used), 1),
        *_differs("uses", uses, 1),
        *_differs("stock", await _stock(shop, product), STOCK - 1),
    ]


async def _buy(browser: Browser, **values: Any) -> Answer:
    """Check out, with a key that makes repeats safe, until the answer is a definite one."""
    for _ in range(TRIES):
        answer = await check_out(browser, **{"idempotencyKey": "k", **values})
        if "errors" not in answer.body or answer.code not in LATE:
            break
    return answer


def _outcomes(answers: list[Answer]) -> dict[str, int]:
    return dict(Counter(a.code if "errors" in a.body else "ordered" for a in answers))


async def _orders(shop: Shop, product: str) -> list[dict[str, Any]]:
    """Return the orders of a product, of which a round has at most 100."""
    wanted = record_id(product, "Product", "id")
    found = (await shop.owner.get("/api/orders?limit=100")).body["data"]
    return [one for one in found if one["items"][0]["productId"] == wanted]


async def _stock(shop: Shop, product: str) -> int:
    path = f"/api/products/{record_id(product, 'Product', 'id')}"
    found: int = (await shop.owner.get(path)).body["stock"]
    return found


async def _close(browsers: list[Browser]) -> None:
    for browser in browsers:
        await browser.close()


def _differs(what: str, found: object, wanted: object) -> list[str]:
    return [] if found == wanted else [f"{what}: {found}, wanted {wanted}"]


ROUNDS = 2


async def test_races_of_checkouts(shop: Shop) -> None:
    """A cart makes one order, ten items make ten, and a coupon with one use left is used once."""
    for _ in range(ROUNDS):
        assert await one_cart(shop) == []
        assert await coupon_with_one_use(shop) == []
    assert await hundred_buyers(shop, 15) == []


async def test_concurrent_repeats_make_one_order(shop: Shop) -> None:
    browser = shop.browser()
    await put(browser, await sell(shop, stock=5))
    answers = await asyncio.gather(*(check_out(browser, idempotencyKey="k") for _ in range(6)))
    found = [answer.data["checkout"]["order"] for answer in answers]
    assert all(order == found[0] for order in found)
    assert (await shop.owner.get("/api/orders")).body["total"] == 1


async def test_a_repeat_after_a_lost_response(shop: Shop) -> None:
    browser = shop.browser()
    await put(browser, await sell(shop, stock=5))
    [old] = [c.value for c in browser.http.cookie_jar if c.key == "cartSession"]
    first = await check_out(browser, idempotencyKey="k1")
    # The client never saw the new cookie.
    browser.http.cookie_jar.clear()
    sent = {"input": {"hostname": shop.hostname, **BUYER, "idempotencyKey": "k1"}}
    query = (
        "mutation ($input: CheckoutMutationInput!)"
        " { checkout(input: $input) { order { number accessToken } } }"
    )
    again = await browser.send(query, sent, X_Cart_Session=old)
    order = first.data["checkout"]["order"]
    assert again.data["checkout"]["order"] == {
        "number": order["number"], "accessToken": order["accessToken"],
    }  # fmt: skip
    assert again.headers["X-Cart-Session"] == first.headers["X-Cart-Session"]
    # The key is the visitor's own.
    assert (await check_out(shop.browser(), idempotencyKey="k1")).code == "CART_EMPTY"


def codes(answers: list[Answer]) -> list[str]:
    return sorted(a.code if "errors" in a.body else "" for a in answers)


async def test_adds_at_once_all_count_and_stop_at_the_limit(shop: Shop) -> None:
    products = [await sell(shop, 1, name=f"P{n}") for n in range(4)]
    for _ in range(ROUNDS):
        browser = shop.browser()
        # The first look gives the token; the first change makes the row.
        await cart(browser)
        await asyncio.gather(
            *(change(browser, "AddProduct", productId=product) for product in products * 3)
        )
        held = {one["productId"]: one["quantity"] for one in (await cart(browser))["products"]}
        assert held == dict.fromkeys(products, 3)
        await change(browser, "UpdateProduct", id=products[0], quantity=997)
        answers = await asyncio.gather(
            *(do(browser, "AddProduct", productId=products[0]) for _ in range(6))
        )
        assert codes(answers) == ["", ""] + ["QUANTITY_LIMIT"] * 4

    async def unit(tx: Tx) -> list[Row]:
        return await tx.all("select id from carts")

    assert len(await shop.db.read(unit)) == ROUNDS


async def test_a_cart_has_at_most_100_lines(shop: Shop) -> None:
    browser = shop.browser()
    products = [await sell(shop, 1, name=f"P{n}") for n in range(103)]
    for product in products[:98]:
        await browser.do("shoppingCartAddProduct", "warnings { code }", productId=product)
    answers = await asyncio.gather(
        *(do(browser, "AddProduct", productId=product) for product in products[98:])
    )
    assert codes(answers) == ["", "", "QUANTITY_LIMIT", "QUANTITY_LIMIT", "QUANTITY_LIMIT"]
    [beyond, *_] = [
        one for one, told in zip(products[98:], answers, strict=True) if "errors" in told.body
    ]
    refused(await do(browser, "AddProduct", productId=beyond), "QUANTITY_LIMIT", "productId")
    # One more of a product that is there is no further line.
    payload = await change(browser, "AddProduct", productId=products[7])
    assert payload["shoppingCart"]["totalQuantity"] == 101
    # A line that the store no longer sells makes room.
    await edit(shop, products[0], published=False)
    payload = await change(browser, "AddProduct", productId=beyond)
    assert len(payload["shoppingCart"]["products"]) == 100
