"""Discount modals: their REST resource, the query, and the coupons that they issue."""

import asyncio
from typing import Any

from gateway.domain.storefront.campaigns import modals
from gateway.domain.storefront.campaigns.modals import KEPT
from gateway.domain.storefront.stores import stores
from gateway.domain.storefront.visitors.shopper import Shopper
from outbox.database.transaction import Tx
from outbox.durations import DAY
from tests.gateway.graphql.test_carts import refused
from tests.support.carts import change, do, sell
from tests.support.shop import Answer, Browser, Shop, open_shop

SHOWN = "discountModal(hostname: $h) { id title discountPercentage discountValue validDays }"


async def modal(shop: Shop, **values: Any) -> Any:
    body = {
        "storeId": shop.store["id"], "title": "10% off", "prefix": "WELCOME",
        "discountPercentage": 10, **values,
    }  # fmt: skip
    reply = await shop.owner.post("/api/discount-modals", body)
    assert reply.status == 201, reply.body
    return reply.body


async def save(
    browser: Browser, modal_id: str, email: str = "maria@example.com", **values: Any
) -> Answer:
    return await browser.do(
        "saveDiscountModalUserData", "couponCode success",
        discountModalId=modal_id, email=email, **values,
    )  # fmt: skip


async def code(browser: Browser, modal_id: str, email: str = "maria@example.com") -> str:
    payload = (await save(browser, modal_id, email)).data["saveDiscountModalUserData"]
    assert payload["success"] is True
    return str(payload["couponCode"])


async def test_the_query_shows_an_active_modal(shop: Shop) -> None:
    browser = shop.browser()
    assert (await browser.ask(SHOWN))["discountModal"] is None
    old, new = await modal(shop), await modal(shop, discountPercentage=None, discountValue=5.5)
    expected = {
        "id": new["globalId"], "title": "10% off", "discountPercentage": None,
        "discountValue": 550, "validDays": 30,
    }  # fmt: skip
    assert (await browser.ask(SHOWN))["discountModal"] == expected
    for text in (new["globalId"], new["id"], new["id"].upper()):
        selection = f'discountModal(hostname: $h, id: "{text}") {{ id }}'
        assert (await browser.ask(selection))["discountModal"] == {"id": new["globalId"]}
        node = await browser.send(f'{{ node(id: "{text}") {{ id }} }}')
        shown = {"id": text} if text == new["globalId"] else None
        assert node.data["node"] == shown
    await shop.owner.put(f"/api/discount-modals/{new['id']}", {"active": False})
    assert (await browser.ask(SHOWN))["discountModal"]["id"] == old["globalId"]
    selection = f'discountModal(hostname: $h, id: "{new["id"]}") {{ id }}'
    assert (await browser.ask(selection))["discountModal"] is None
    node = await browser.send(f'{{ node(id: "{new["globalId"]}") {{ id }} }}')
    assert node.data["node"] is None
    other = await open_shop(shop.api, "other.example")
    theirs = f'discountModal(hostname: $h, id: "{old["id"]}") {{ id }}'
    assert (await other.browser().ask(theirs))["discountModal"] is None
    await other.close()


async def test_an_email_that_comes_many_times_at_once_gets_one_coupon(shop: Shop) -> None:
    campaign = await modal(shop)
    for round_ in range(10):
        email = f"p{round_}@example.com"
        codes = await asyncio.gather(
            *(code(shop.browser(), campaign["id"], email) for _ in range(6))
        )
        assert len(set(codes)) == 1
    listed = (await shop.owner.get("/api/coupons")).body
    assert (listed["total"], len(listed["data"])) == (10, 10)
    assert (await shop.owner.get("/api/contacts")).body["total"] == 10


async def test_an_unused_coupon_is_deleted_a_while_after_its_end(shop: Shop) -> None:
    campaign = await modal(shop, validDays=1)
    unused, used = (
        await code(shop.browser(), campaign["id"]),
        await code(shop.browser(), campaign["id"], "b@x.br"),
    )

    async def age(tx: Tx, by: int) -> None:
        await tx.run("update coupons set ends_at = ends_at - $1", by)

    async def use(tx: Tx) -> None:
        await tx.run("update coupons set uses = 1 where code = $1", used)

    await shop.db.write(use)
    await shop.db.write(age, 2 * DAY)
    browser = shop.browser()
    await change(browser, "AddProduct", productId=await sell(shop))
    refused(await do(browser, "ApplyCoupon", code=unused), "COUPON_EXPIRED", "code")
    assert await shop.db.write(modals.purge_coupons, 10) == 0
    assert await code(browser, campaign["id"]) == unused
    await shop.db.write(age, KEPT)
    assert await shop.db.write(modals.purge_coupons, 10) == 1
    listed = (await shop.owner.get("/api/coupons")).body
    assert ([each["code"] for each in listed["data"]], listed["total"]) == ([used], 1)
    # Whoever used theirs has had it; whoever did not gets another one.
    assert await code(browser, campaign["id"], "b@x.br") == used
    assert await code(browser, campaign["id"]) != unused


def test_a_code_has_8_digits_without_look_alikes() -> None:
    assert modals.code_of("P", b"\x00" * 5) == "P-00000000"
    assert modals.code_of("P", b"\xff" * 5) == "P-ZZZZZZZZ"
    assert modals.code_of("P", bytes([0, 68, 50, 20, 199])) == "P-01234567"
    assert not {*"ILOU"} & {*modals.DIGITS}
    assert len({*modals.DIGITS}) == 32


async def test_a_code_that_is_taken_is_not_given(shop: Shop) -> None:
    campaign = await modal(shop)
    taken = modals.code_of("WELCOME", b"\x01" * 5)
    body = {"storeId": shop.store["id"], "code": taken.lower(), "discountValue": 1}
    assert (await shop.owner.post("/api/coupons", body)).status == 201
    store, zone = await shop.db.read(stores.by_hostname, shop.hostname)
    coupon_code = await shop.db.write(
        modals.save_user_data, Shopper(store=store, zone=zone), campaign["id"],
        {"email": "maria@example.com"}, [b"\x01" * 5, b"\x02" * 5],
    )  # fmt: skip
    assert coupon_code == modals.code_of("WELCOME", b"\x02" * 5)
