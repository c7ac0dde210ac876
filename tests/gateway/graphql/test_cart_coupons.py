"""Coupons in a cart."""

import asyncio
from typing import Any

import pytest

from gateway.records.values import dates
from gateway.server.config import Config, Limits
from outbox.database.transaction import Database, Tx
from tests.gateway.graphql.test_accounts import sign_up
from tests.gateway.graphql.test_carts import refused, rows
from tests.support.carts import cart, change, do, offer, sell
from tests.support.rest import RestApi
from tests.support.shop import Browser, Shop, open_shop
from tests.support.site import serving


async def shopper(shop: Shop, price: float = 100, quantity: int = 1) -> Browser:
    """Return a visitor whose cart has products."""
    browser = shop.browser()
    await change(browser, "AddProduct", productId=await sell(shop, price), quantity=quantity)
    return browser


async def test_a_percentage_is_rounded_half_up_once_for_the_cart(shop: Shop) -> None:
    await offer(shop, "TEN", discountPercentage=10)
    # 3 x 0.15 BRL: 10 percent of each is 1.5 centavos, of all 4.5.
    browser = await shopper(shop, 0.15, 3)
    payload = await change(browser, "ApplyCoupon", code="ten")
    contents = payload["shoppingCart"]
    assert contents["coupon"] == {"code": "TEN", "discountPercentage": 10, "discountValue": None}
    assert (contents["totalPrice"], contents["totalDiscount"], contents["total"]) == (45, 5, 40)
    assert contents == await cart(browser)
    await offer(shop, "FINE", discountPercentage=33.33)
    contents = (await change(browser, "ApplyCoupon", code="FINE"))["shoppingCart"]
    assert (contents["coupon"]["discountPercentage"], contents["totalDiscount"]) == (33.33, 15)
    contents = (await change(browser, "RemoveCoupon"))["shoppingCart"]
    assert (contents["coupon"], contents["totalDiscount"], contents["total"]) == (None, 0, 45)


async def test_unknown_codes_and_those_of_other_stores_are_not_found(shop: Shop) -> None:
    other = await open_shop(shop.api, "other.example")
    await offer(other, "THEIRS", discountValue=1)
    browser = await shopper(shop)
    for code in ("NONE", "THEIRS", "", "x" * 10_000, "%", "A B"):
        refused(await do(browser, "ApplyCoupon", code=code), "COUPON_NOT_FOUND", "code")
    # The escapes of a document pass the reader of JSON.
    for code in (r"A\u0000", r"\ud800"):
        document = (
            f'mutation {{ shoppingCartApplyCoupon(input: {{hostname: "{shop.hostname}",'
            f' code: "{code}"}}) {{ shoppingCart {{ id }} }} }}'
        )
        assert (await browser.send(document)).code in ("COUPON_NOT_FOUND", "BAD_USER_INPUT")
    # Nor does a wrong code make a row for a new visitor.
    await do(shop.browser(), "ApplyCoupon", code="NONE")
    assert len(await shop.db.read(rows)) == 1


async def test_a_coupon_without_uses_left_is_refused(shop: Shop) -> None:
    coupon = await offer(shop, "ONCE", discountValue=1, maxUses=1)
    browser = await shopper(shop)
    await change(browser, "ApplyCoupon", code="ONCE")
    await _set(shop, coupon["id"], uses=1)
    contents = await cart(browser)
    assert (contents["coupon"], contents["totalDiscount"]) == (None, 0)
    assert [w["code"] for w in contents["warnings"]] == ["COUPON_REMOVED"]
    refused(await do(browser, "ApplyCoupon", code="ONCE"), "COUPON_USAGE_LIMIT", "code")


async def test_a_customer_uses_a_coupon_as_often_as_it_allows(shop: Shop) -> None:
    coupon = await offer(shop, "EACH", discountValue=1, perCustomer=1)
    browser = await shopper(shop)
    answer = await sign_up(browser)
    assert answer.data
    await change(browser, "ApplyCoupon", code="EACH")

    async def use(tx: Tx) -> None:
        row = await tx.one("select id, owner_id from customers")
        assert row is not None
        await tx.run(
            "insert into coupon_uses (id, owner_id, coupon_id, holder, customer_id, state,"
            " created_at) values ($1, $2, $3, $4, $5, 'redeemed', 1)",
            "1" * 24, row["owner_id"], coupon["id"], b"h", row["id"],
        )  # fmt: skip

    await shop.db.write(use)
    refused(await do(browser, "ApplyCoupon", code="EACH"), "COUPON_USAGE_LIMIT", "code")
    await change(await shopper(shop), "ApplyCoupon", code="EACH")


@pytest.mark.parametrize(
    "values",
    [{"active": False}, {"ends_at": 1}, {"min_total": 100_000}, {"starts_at": dates.LAST}, None],
)
async def test_a_coupon_that_no_longer_applies_is_removed_with_a_warning(
    shop: Shop, values: dict[str, Any] | None
) -> None:
    coupon = await offer(shop, "SOON", discountValue=1)
    browser = await shopper(shop)
    await change(browser, "ApplyCoupon", code="SOON")
    if values is None:
        assert (await shop.owner.delete(f"/api/coupons/{coupon['id']}")).status == 200
    else:
        await _set(shop, coupon["id"], **values)
    for _ in range(2):
        contents = await cart(browser)
        assert (contents["coupon"], contents["totalDiscount"]) == (None, 0)
        assert [w["code"] for w in contents["warnings"]] == ["COUPON_REMOVED"]
    payload = await change(browser, "AddProduct", productId=await sell(shop))
    assert [w["code"] for w in payload["warnings"]] == ["COUPON_REMOVED"]
    assert (await cart(browser))["warnings"] == []


async def test_a_cart_below_the_least_total_loses_its_coupon(shop: Shop) -> None:
    await offer(shop, "MIN", discountValue=1, minTotal=150)
    browser = await shopper(shop, 100, 2)
    await change(browser, "ApplyCoupon", code="MIN")
    product = (await cart(browser))["products"][0]["productId"]
    payload = await change(browser, "UpdateProduct", id=product, quantity=1)
    assert [w["code"] for w in payload["warnings"]] == ["COUPON_REMOVED"]
    assert payload["shoppingCart"]["coupon"] is None


async def test_guessing_codes_is_limited_and_using_known_ones_is_not(db: Database) -> None:
    limits = Limits(read_per_second=0, write_per_second=0, forms_per_minute=4)
    async with serving(db, Config(limits=limits)) as site:
        shop = await open_shop(RestApi(site))
        try:
            await offer(shop, "KNOWN", discountValue=1)
            await offer(shop, "DEAR", discountValue=1, minTotal=10_000)
            browser = await shopper(shop)
            for _ in range(8):
                await change(browser, "ApplyCoupon", code="KNOWN")
                refused(
                    await do(browser, "ApplyCoupon", code="DEAR"), "COUPON_NOT_APPLICABLE", "code"
                )
            guesses = await asyncio.gather(
                *(do(shop.browser(), "ApplyCoupon", code=f"G{n}") for n in range(8))
            )
            assert sorted(each.code for each in guesses) == (
                ["COUPON_NOT_FOUND"] * 4 + ["RATE_LIMITED"] * 4
            )
            # Now a right guess would not tell itself from a wrong one.
            limited = await do(browser, "ApplyCoupon", code="KNOWN")
            assert limited.code == "RATE_LIMITED"
            assert limited.error["extensions"]["retryAfter"] >= 1
        finally:
            await shop.close()


async def _set(shop: Shop, coupon_id: str, **columns: Any) -> None:
    async def unit(tx: Tx) -> None:
        for column, value in columns.items():
            await tx.run(f"update coupons set {column} = $2 where id = $1", coupon_id, value)

    await shop.db.write(unit)
