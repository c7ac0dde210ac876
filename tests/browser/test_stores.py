"""Stores, orders and reviews as their owner sees them: by mouse, on a phone, without scripts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import sign_in, window
from tests.browser.test_console import CONTRAST, TOO_WIDE, UNNAMED
from tests.browser.test_narrow import DESKTOP, MISPLACED, PHONE, SMALL
from tests.support import orders
from tests.support.rest import RestApi
from tests.support.shop import Shop
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.browser
LONG = "W" * 180


async def filled(site: Site) -> tuple[str, str, str]:
    """Return the paths of a store, an order and a review of Maria, with long texts."""
    api = RestApi(site)
    owner = await api.key_of(await site.user())
    rule = {
        "type": "express", "name": f"Express {LONG}", "price": 25.5, "deadline": 2,
        "cepFrom": "01000000", "cepTo": "05999999",
    }  # fmt: skip
    store = {
        "hostname": f"{'shop' * 14}.{'example' * 8}.com", "name": f"Coffee {LONG}",
        "aliases": ["www.shop.example.com"], "allowedOrigins": ["https://shop.example.com"],
        "idps": [{"issuer": "https://id.example.com", "clientIds": ["one", "two"]}],
        "shippingRules": [rule, rule | {"type": "slow", "name": "Slow"}],
    }  # fmt: skip
    made = await owner.post("/api/stores", store)
    assert made.status == 201, made.text
    shop = Shop(api, owner, made.body)
    product = await orders.product(owner, storeId=shop.store["id"], name=f"Beans {LONG}")
    order = await orders.placed(shop, {product: 2}, shipping=1550, discount=500)
    browser = shop.browser()
    signed = await browser.do(
        "clientSignup", "token", name=f"Ana {LONG}", email="ana@example.com", password="segredo-1"
    )
    assert signed.data
    shown = (await owner.get(f"/api/products/{product}")).body
    listed = (await browser.ask("products(hostname: $h) { nodes { id } }"))["products"]["nodes"]
    for text in (f"Good. {LONG}\n\nAnd again.", "Fine."):
        answer = await browser.do(
            "createReview", "review { id }", productId=listed[0]["id"], stars=4, text=text
        )
        assert answer.data, shown
    await shop.close()
    reviews = (await owner.get("/api/reviews")).body["data"]
    return (
        f"/console/stores/{shop.store['id']}", f"/console/orders/{order['id']}",
        f"/console/reviews/{reviews[-1]['id']}",
    )  # fmt: skip


async def test_every_page_of_a_store_fits_and_can_be_read(
    chromium: Browser, site: Site, tmp_path: Path
) -> None:
    """In light and dark, on a phone and a desktop; screenshots are in `tmp_path`."""
    store, order, review = await filled(site)
    paths = [
        "/console/stores", "/console/stores/new", store, f"{store}/edit", "/console/orders", order,
        f"{order}/cancel", "/console/reviews", "/console/reviews?status=rejected", review,
    ]  # fmt: skip
    found: dict[tuple[str, str], list[str]] = {}
    for scheme in ("light", "dark"):
        async with window(chromium, site, viewport=PHONE, color_scheme=scheme) as view:
            page = view.page
            await sign_in(view)
            for size in (PHONE, DESKTOP):
                await page.set_viewport_size({"width": size["width"], "height": size["height"]})
                for number, path in enumerate(paths):
                    await view.open(path)
                    name = f"{number}-{scheme}-{size['width']}.png"
                    await page.screenshot(path=tmp_path / name, full_page=True)
                    wrong: list[str] = []
                    found[name, path] = wrong
                    for check in (MISPLACED, SMALL, CONTRAST, UNNAMED):
                        wrong += await page.evaluate(check)
                    if await page.evaluate(TOO_WIDE) > 0:
                        wrong.append("too wide")
    assert {page: wrong for page, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize("scripts", [True, False])
async def test_the_owner_of_a_store_at_work(chromium: Browser, site: Site, scripts: bool) -> None:
    _, order, review = await filled(site)
    async with window(chromium, site, java_script_enabled=scripts) as view:
        page = view.page
        await sign_in(view)
        await view.choose("Shop", "Stores")
        await page.get_by_role("button", name="New store").click()
        await page.get_by_label("Hostname").fill("tea.example")
        await page.get_by_label("Name", exact=True).first.fill("Tea Shop")
        await page.get_by_label("Aliases").fill("www.tea.example\nloja.tea.example")
        rule = page.get_by_role("group", name="Shipping rules 1")
        for label, text in (
            ("Type", "post"), ("Name", "Post"), ("Price", "9,90"), ("Days until delivery", "5"),
            ("First CEP", "00000-000"), ("Last CEP", "99999-99"),
        ):  # fmt: skip
            await rule.get_by_label(label).fill(text)
        await page.get_by_role("button", name="Create store").click()
        await page.get_by_text("Send a CEP of eight digits").wait_for()
        # The browser reports the response 400, which shows the form again.
        assert [wrong for wrong in view.wrong if "400 (Bad Request)" not in wrong] == []
        view.wrong.clear()
        await page.get_by_label("Last CEP").first.fill("99999-999")
        await page.get_by_role("button", name="Create store").click()
        await page.get_by_text("Store created.").wait_for()
        assert await page.get_by_text("R$ 9,90").count() == 1
        await page.get_by_role("button", name="Edit").click()
        await page.get_by_label("Hold reviews for approval").check()
        await page.get_by_role("button", name="Save changes").click()
        await page.get_by_text("Changes saved.").wait_for()

        await view.choose("Shop", "Orders")
        await page.get_by_role("link", name="ORD-000001").click()
        await page.get_by_role("button", name="Cancel order").click()
        await page.get_by_label("Reason").fill("Ordered twice")
        await page.get_by_role("button", name="Cancel order").click()
        await page.get_by_text("Order canceled.").wait_for()
        assert view.page.url.partition("?")[0].endswith(order)

        await view.choose("Shop", "Reviews")
        await page.get_by_role("button", name="Reject").first.click()
        await page.get_by_text("Review rejected.").wait_for()
        await view.open(review)
        await page.get_by_role("button", name="Reject").click()
        await page.get_by_text("Review rejected.").wait_for()
        await page.get_by_role("button", name="Approve").click()
        await page.get_by_text("Review approved.").wait_for()
