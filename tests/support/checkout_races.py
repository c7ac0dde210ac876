"""Races of checkouts; each returns what went wrong, a sentence each."""

import asyncio
from collections import Counter
from typing import Any

from gateway.graphql.ids import record_id
from tests.support.carts import change, sell
from tests.support.checkouts import check_out, coupon, put
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
