"""The documents of the cart and of discount modals, one purchase long."""

from outbox.database.transaction import Database
from tests.gateway.graphql.test_shipping import RULES, rule
from tests.support.carts import cart, change, offer, sell
from tests.support.counted import Counted
from tests.support.shop import opened


async def test_the_cart_costs_two_reads_besides_the_visitor(db: Database) -> None:
    counted = Counted(db)
    async with opened(counted) as shop:
        await rule(shop, RULES)
        await offer(shop, "TEN", discountPercentage=10)
        browser = shop.browser()
        for count in (1, 9):
            for n in range(count):
                product = await sell(shop, 1, name=f"P{count}-{n}", images=[])
                await change(browser, "AddProduct", productId=product)
            await change(browser, "ApplyCoupon", code="TEN")
            await change(browser, "SetShipping", cep="01310100", type="express")
            counted.reset()
            contents = await cart(browser)
            assert (contents["coupon"]["code"], contents["shippingType"]) == ("TEN", "express")
            of_cart = [
                sql for sql in counted.statements
                if "from carts" in sql or "from products" in sql or "from coupons" in sql
            ]  # fmt: skip
            assert len(of_cart) == 2
            assert len(counted.statements) <= 4
            assert counted.units <= 2
