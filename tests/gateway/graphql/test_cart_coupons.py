"""Coupons in a cart."""

import asyncio

from gateway.server.config import Config, Limits
from outbox.database.transaction import Database, Tx
from tests.gateway.graphql.test_accounts import sign_up
from tests.gateway.graphql.test_carts import refused
from tests.support.carts import change, do, offer, sell
from tests.support.shop import Browser, Shop, opened


async def shopper(shop: Shop, price: float = 100, quantity: int = 1) -> Browser:
    """Return a visitor whose cart has products."""
    browser = shop.browser()
    await change(browser, "AddProduct", productId=await sell(shop, price), quantity=quantity)
    return browser


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


async def test_guessing_codes_is_limited_and_using_known_ones_is_not(still: Database) -> None:
    limits = Limits(read_per_second=0, write_per_second=0, forms_per_minute=4)
    async with opened(still, Config(limits=limits)) as shop:
        await offer(shop, "KNOWN", discountValue=1)
        await offer(shop, "DEAR", discountValue=1, minTotal=10_000)
        browser = await shopper(shop)
        for _ in range(8):
            await change(browser, "ApplyCoupon", code="KNOWN")
            refused(await do(browser, "ApplyCoupon", code="DEAR"), "COUPON_NOT_APPLICABLE", "code")
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
