"""A coupon counts for a person, however they spell their email, and a modal's for who asked."""

import pytest

from gateway.records.values.emails import counted_email
from tests.gateway.graphql.test_modals import code, modal
from tests.gateway.graphql.test_person_erasures import erased
from tests.support.carts import change, sell
from tests.support.checkouts import check_out, coupon, ordered, put
from tests.support.shop import Answer, Shop


@pytest.mark.parametrize(
    ("email", "counted"),
    [
        ("Maria@Example.com", "maria@example.com"),
        ("maria+shop@example.com", "maria@example.com"),
        ("ma.ria@example.com", "ma.ria@example.com"),
        ("m.a.r.i.a+1+2@GoogleMail.com", "maria@gmail.com"),
        ("maria@gmail.com", "maria@gmail.com"),
        ("+1@example.com", "+1@example.com"),
        ("Maria+1@EXÄMPLE.de", "maria@xn--exmple-cua.de"),
        ("...@gmail.com", "...@gmail.com"),
    ],
)
def test_spellings_of_an_email(email: str, counted: str) -> None:
    assert counted_email(email) == counted


async def order_with(shop: Shop, product: str, email: str, applied: str = "WELCOME") -> Answer:
    browser = shop.browser()
    await put(browser, product)
    await change(browser, "ApplyCoupon", code=applied)
    return await check_out(browser, email=email)


async def test_a_coupon_once_per_customer_counts_spellings_of_an_email(shop: Shop) -> None:
    """The attack: one person, one coupon for each spelling."""
    await coupon(shop, perCustomer=1)
    product = await sell(shop, 100)
    assert (await order_with(shop, product, "maria@gmail.com")).data
    assert (await order_with(shop, product, "ana@exämple.de")).data
    for email in (
        "maria+1@gmail.com",
        "ana@xn--exmple-cua.de",
        "m.aria@gmail.com",
        "maria@googlemail.com",
    ):
        assert (await order_with(shop, product, email)).code == "COUPON_USAGE_LIMIT"
    assert (await order_with(shop, product, "mario@gmail.com")).data


async def test_the_coupon_of_a_modal_is_for_the_email_that_asked(shop: Shop) -> None:
    """The attack: coupons for emails of nobody, all used by one buyer."""
    made = await modal(shop)
    product = await sell(shop, 100)
    issued = await code(shop.browser(), made["id"], "nobody@example.com")
    browser = shop.browser()
    await put(browser, product)
    await change(browser, "ApplyCoupon", code=issued)
    refused = await check_out(browser, email="maria@example.com")
    assert refused.code == "COUPON_NOT_APPLICABLE"
    assert "outro e-mail" in refused.error["message"]
    order = await ordered(browser, email="Nobody+1@example.com")
    assert order["coupon"]["code"] == issued


async def test_the_coupon_of_a_deleted_modal_is_still_for_the_email_that_asked(shop: Shop) -> None:
    made = await modal(shop)
    product = await sell(shop, 100)
    issued = await code(shop.browser(), made["id"], "maria@example.com")
    assert (await shop.owner.delete(f"/api/discount-modals/{made['id']}")).status == 200
    refused = await order_with(shop, product, "rui@example.com", issued)
    assert refused.code == "COUPON_NOT_APPLICABLE"
    assert (await order_with(shop, product, "maria@example.com", issued)).data


async def test_coupons_of_a_deleted_modal_are_exported_and_erased(shop: Shop) -> None:
    """Also beside another modal that issued coupons, and without those of others."""
    gone, stays = await modal(shop), await modal(shop)
    issued = [await code(shop.browser(), one["id"], "maria@example.com") for one in (gone, stays)]
    other = await code(shop.browser(), gone["id"], "rui@example.com")
    assert (await shop.owner.delete(f"/api/discount-modals/{gone['id']}")).status == 200
    [maria] = (await shop.owner.get("/api/contacts?search=maria")).body["data"]
    file = await shop.owner.get(f"/api/contacts/{maria['id']}/data-export")
    assert sorted(one["code"] for one in file.body["coupons"]) == sorted(issued)
    certificate = await erased(shop, f"/api/contacts/{maria['id']}")
    assert certificate["erased"]["coupons"] == 2
    product = await sell(shop, 100)
    for one in issued:
        refused = await order_with(shop, product, "maria@example.com", one)
        assert refused.code == "COUPON_NOT_APPLICABLE"
    assert (await order_with(shop, product, "rui@example.com", other)).data
