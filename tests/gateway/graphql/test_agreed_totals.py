"""A checkout costs at most what the buyer saw."""

import re
from typing import Any

from gateway.server.storefront import STOREFRONT
from outbox.database.transaction import Database
from tests.gateway.graphql.test_carts import refused
from tests.support.carts import cart, change, edit, sell
from tests.support.checkouts import (
    ADDRESS,
    BUYER,
    PASSWORD,
    RULES,
    check_out,
    coupon,
    ordered,
    put,
    sign_up,
)
from tests.support.counted import Counted
from tests.support.shop import Answer, Browser, Shop, opened

BLIND = "warnings { code }"
"""A selection that shows no total."""


async def sold(shop: Shop) -> list[Any]:
    return list((await shop.owner.get("/api/orders?limit=100")).body["data"])


def rise(answer: Answer) -> tuple[int, int]:
    """Return the two totals, in centavos, of a checkout that is refused because its total rose."""
    assert answer.code == "TOTAL_CHANGED"
    before, after = re.findall(r"R\$\xa0([\d.]+,\d\d)", answer.error["message"])
    return int(re.sub(r"\D", "", before)), int(re.sub(r"\D", "", after))


async def rule(shop: Shop, rules: list[Any]) -> None:
    path = f"/api/stores/{shop.store['id']}"
    assert (await shop.owner.put(path, {"shippingRules": rules})).status == 200


async def dear(shop: Shop, browser: Browser) -> str:
    """Show a cart of 20 BRL to the browser, then raise it to 1,998 BRL; return the product."""
    product = await sell(shop, 10, stock=5)
    await put(browser, product, 2)
    assert (await cart(browser))["total"] == 2000
    await edit(shop, product, price=99_900)
    return product


SHOWN = (
    "total", "totalPrice totalDiscount totalShipping", "... on ShoppingCart { a: total b: total }",
)  # fmt: skip
HIDDEN = (
    "totalQuantity warnings { code }", "totalPrice", "products { price } totalPrice totalDiscount",
    "id total @skip(if: true)",
)  # fmt: skip
"""What a query selects of a cart, with its total and without."""


async def test_what_shows_the_total_agrees_to_it_and_nothing_else(shop: Shop) -> None:
    product = await sell(shop, 1)
    for selection in (*SHOWN, *HIDDEN):
        browser = shop.browser()
        await dear(shop, browser)
        await browser.ask(f"shoppingCart(hostname: $h) {{ {selection} }}")
        answer = await check_out(browser)
        assert selection in SHOWN or answer.code == "TOTAL_CHANGED"
        # A mutation agrees as a query does.
        browser = shop.browser()
        await dear(shop, browser)
        added = f"shoppingCart {{ {selection} }}"
        await browser.do("shoppingCartAddProduct", added, productId=product)
        answer = await check_out(browser)
        assert selection in SHOWN or answer.code == "TOTAL_CHANGED"
    totals = [order["total"] for order in await sold(shop)]
    assert totals == [1999, 1998] * len(SHOWN)


LOWER = (
    "total", "totalPrice", "products { price }", "products { price } totalPrice totalQuantity",
    "a: totalPrice coupon { code }", "... on ShoppingCart { products { p: price } }",
    "warnings { message }", "totalDiscount", "totalShipping", "coupon { discountValue }",
    "shippingOptions { price }", "totalPrice @include(if: true) id",
)  # fmt: skip
PRICELESS = ("id totalQuantity", "requiresShipping cep shippingType", "totalPrice @skip(if: true)")
"""What a query selects of a cart, with an amount of it and without."""


async def test_what_shows_an_amount_agrees_to_a_lower_total(shop: Shop) -> None:
    other, seen = await sell(shop, 1), {}
    for selection in (*LOWER, *PRICELESS):
        browser, product = shop.browser(), await sell(shop, 1000)
        await put(browser, product)
        await edit(shop, product, price=10_000)
        await browser.ask(f"shoppingCart(hostname: $h) {{ {selection} }}")
        await edit(shop, product, price=100_000)
        seen[selection] = (await check_out(browser)).body.get("errors") is None
        # A change stores the lower total, whatever it shows.
        browser = shop.browser()
        await put(browser, product)
        await edit(shop, product, price=10_000)
        added = f"shoppingCart {{ {selection} }}"
        assert (await browser.do("shoppingCartAddProduct", added, productId=other)).data
        await edit(shop, product, price=100_000)
        assert rise(await check_out(browser)) == (10_100, 100_100)
    assert seen == {**dict.fromkeys(LOWER, False), **dict.fromkeys(PRICELESS, True)}


async def test_a_line_that_leaves_takes_along_what_it_cost_when_it_was_seen(shop: Shop) -> None:
    for selection in ("shoppingCart { totalPrice }", BLIND):
        fallen, added, browser = await sell(shop, 1000), await sell(shop, 10), shop.browser()
        await put(browser, fallen)
        await edit(shop, fallen, price=10_000)
        await browser.do("shoppingCartAddProduct", selection, productId=added)
        await browser.do("shoppingCartRemoveProduct", selection, id=fallen)
        await edit(shop, added, price=50_000)
        assert rise(await check_out(browser)) == (1000, 50_000)


async def test_a_change_after_a_look_needs_no_further_look(shop: Shop) -> None:
    await rule(shop, RULES)
    await coupon(shop, discountPercentage=10)
    left, gone = await sell(shop, 10), await sell(shop, 1000)
    for raised in (False, True):
        for name, values, total in (
            ("RemoveProduct", {"id": gone}, 1000 - 100 + 2550),
            ("UpdateProduct", {"id": gone, "quantity": 1}, 11_000 - 1100 + 2550),
            ("AddProduct", {"productId": left}, 22_000 - 2200 + 2550),
            ("RemoveCoupon", {}, 21_000 + 2550),
            ("SetShipping", {"cep": ADDRESS["cep"], "type": "economy"}, 21_000 - 2100 + 1000),
        ):
            browser = shop.browser()
            await edit(shop, gone, price=1000 if raised else 100_000)
            await put(browser, left)
            await put(browser, gone, 2)
            await change(browser, "ApplyCoupon", code="WELCOME")
            await change(browser, "SetShipping", cep=ADDRESS["cep"], type="express")
            await edit(shop, gone, price=10_000)
            # It stores nothing but the total.
            assert (await cart(browser))["total"] == 21_000 - 2100 + 2550
            assert (await browser.do(f"shoppingCart{name}", BLIND, **values)).data
            assert (await ordered(browser, address=ADDRESS))["total"] == total


async def test_the_last_of_two_looks_within_a_second_counts(shop: Shop) -> None:
    for first in (10_000, 1_000_000):
        for more in (0, 1):
            product, browser = await sell(shop, 1000), shop.browser()
            await put(browser, product)
            for price in (first, 100_000):
                await edit(shop, product, price=price)
                assert (await cart(browser))["total"] == price
            await edit(shop, product, price=100_000 + more)
            answer = await check_out(browser)
            assert ("errors" in answer.body) == bool(more)
            assert not more or rise(answer) == (100_000, 100_001)


async def test_the_total_of_a_download_has_no_shipping(shop: Shop) -> None:
    await rule(shop, RULES)
    cep = ADDRESS["cep"]
    for selection in ("shoppingCart { total }", BLIND):
        browser = shop.browser()
        download, mug = await sell(shop, 10, requiresShipping=False), await sell(shop, 20)
        for product in (download, mug):
            await browser.do("shoppingCartAddProduct", selection, productId=product)
        await browser.do("shoppingCartSetShipping", selection, cep=cep, type="express")
        await browser.do("shoppingCartRemoveProduct", selection, id=mug)
        await edit(shop, download, price=3500)
        assert rise(await check_out(browser)) == (1000, 3500)
        for kind in ("express", "economy", None):
            await browser.do("shoppingCartSetShipping", BLIND, cep=cep, type=kind)
        assert (await ordered(browser))["total"] == 3500
        # What is shipped brings its shipping along.
        browser = shop.browser()
        await browser.do("shoppingCartAddProduct", selection, productId=download)
        await browser.do("shoppingCartSetShipping", selection, cep=cep, type="economy")
        await browser.do("shoppingCartAddProduct", BLIND, productId=mug)
        assert (await ordered(browser, address=ADDRESS))["total"] == 3500 + 2000 + 1000


async def test_a_product_that_begins_to_be_shipped_costs_more(shop: Shop) -> None:
    await rule(shop, RULES)
    browser, product = shop.browser(), await sell(shop, 10, requiresShipping=False)
    await put(browser, product)
    await change(browser, "SetShipping", cep=ADDRESS["cep"], type="economy")
    await edit(shop, product, requires_shipping=True)
    assert (await check_out(browser, address=ADDRESS)).code == "TOTAL_CHANGED"
    await edit(shop, product, requires_shipping=False)
    answer = await check_out(browser)
    assert [warning["code"] for warning in answer.data["checkout"]["warnings"]] == ["TOTAL_CHANGED"]
    assert answer.data["checkout"]["order"]["total"] == 1000


async def test_what_the_visitor_changes_needs_no_look(shop: Shop) -> None:
    await rule(shop, RULES)
    await coupon(shop, discountPercentage=10)
    browser = shop.browser()
    coffee, tea, mug = [await sell(shop, price) for price in (10, 20, 30)]

    async def do(name: str, **values: Any) -> None:
        assert (await browser.do(f"shoppingCart{name}", BLIND, **values)).data

    for product in (coffee, tea, mug):
        await do("AddProduct", productId=product)
    await do("UpdateProduct", id=coffee, quantity=3)
    await do("RemoveProduct", id=tea)
    await do("ApplyCoupon", code="WELCOME")
    await do("SetShipping", cep=ADDRESS["cep"], type="express")
    await do("AddProduct", productId=mug)
    order = await ordered(browser, address=ADDRESS)
    assert order["total"] == 9000 - 900 + 2550


async def test_the_terms_of_coupons_and_shipping_are_agreed_to_also(shop: Shop) -> None:
    await rule(shop, [{**RULES[0], "freeFrom": 100}])
    used = await coupon(shop, discountPercentage=50)
    browser = shop.browser()
    await put(browser, await sell(shop, 100))
    await change(browser, "ApplyCoupon", code="WELCOME")
    await change(browser, "SetShipping", cep=ADDRESS["cep"], type="express")
    assert (await cart(browser))["total"] == 5000
    raised = {"discountPercentage": 10}
    assert (await shop.owner.put(f"/api/coupons/{used}", raised)).status == 200
    assert (await check_out(browser, address=ADDRESS)).code == "TOTAL_CHANGED"
    await rule(shop, [{**RULES[0], "freeFrom": 101}])
    answer = await check_out(browser, address=ADDRESS)
    assert answer.code == "TOTAL_CHANGED"
    assert answer.error["extensions"]["shoppingCart"]["totalShipping"] == 2550
    await rule(shop, [{**RULES[0], "price": 30}])
    assert (await check_out(browser, address=ADDRESS)).code == "TOTAL_CHANGED"
    assert (await ordered(browser, address=ADDRESS))["total"] == 10_000 - 1000 + 3000


async def test_a_repeat_with_its_key_answers_as_before(shop: Shop) -> None:
    browser = shop.browser()
    product = await dear(shop, browser)
    key = {"idempotencyKey": "k1"}
    assert (await check_out(browser, **key, expectedTotal=2000)).code == "TOTAL_CHANGED"
    first = await check_out(browser, **key, expectedTotal=199_800)
    await edit(shop, product, price=500_000)
    again = await check_out(browser, **key, expectedTotal=199_800)
    assert again.data["checkout"] == first.data["checkout"]
    assert len(await sold(shop)) == 1
    other = await check_out(browser, **key, expectedTotal=199_801)
    refused(other, "BAD_USER_INPUT", "idempotencyKey")


async def test_a_sign_in_brings_what_the_visitor_saw(shop: Shop) -> None:
    browser = shop.browser()
    product = await sell(shop, 10)
    await put(browser, product, 2)
    await sign_up(browser)
    await edit(shop, product, price=99_900)
    assert (await check_out(browser)).code == "TOTAL_CHANGED"
    await edit(shop, product, price=1000)
    assert (await cart(browser))["total"] == 2000
    assert (await ordered(browser))["total"] == 2000


async def test_a_merge_agrees_to_no_line_twice(shop: Shop) -> None:
    product = await sell(shop, 10)
    customer, guest = shop.browser(), shop.browser()
    await sign_up(customer)
    await put(customer, product)
    await edit(shop, product, price=100_000)
    assert (await cart(customer))["total"] == 100_000
    await shop.api.site.app[STOREFRONT].looks.settle_all()
    await put(guest, product)
    signed_in = await guest.do("clientLogin", "token", email=BUYER["email"], password=PASSWORD)
    assert signed_in.data
    await edit(shop, product, price=150_000)
    assert rise(await check_out(guest)) == (100_000, 150_000)


async def test_the_statements_of_looks_and_of_a_purchase(db: Database) -> None:
    counted = Counted(db, of_requests=True)
    async with opened(counted, shippingRules=RULES) as shop:
        browser = shop.browser()
        product = await dear(shop, browser)

        async def looked() -> tuple[int, list[str]]:
            counted.reset()
            assert (await cart(browser))["total"] == 199_800
            return len(counted.statements), [name for name, _ in counted.written]

        assert [await looked() for _ in range(3)] == [(2, [])] * 3
        await edit(shop, product, price=500)
        counted.reset()
        await browser.ask("shoppingCart(hostname: $h) { products { price } }")
        assert (len(counted.statements), counted.written) == (2, [])
        browser, product, costs = shop.browser(), await sell(shop, 10), {}

        async def cost(name: str, answer: Any) -> None:
            counted.reset()
            assert await answer
            costs[name] = [len(statements) for _, statements in counted.written]

        await cost("first add", put(browser, product))
        await cost("add", put(browser, product))
        await cost("ship", change(browser, "SetShipping", cep=ADDRESS["cep"], type="express"))
        await cost("order", ordered(browser, address=ADDRESS))
        order = 13 if db.engine == "sqlite" else 15
        assert costs == {"first add": [7], "add": [3], "ship": [3], "order": [order]}
