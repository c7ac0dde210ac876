"""Orders as a shopkeeper works on them: one and many, paid and canceled, with a late payment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import sign_in, window
from tests.browser.test_console import CONTRAST, TOO_WIDE, UNNAMED
from tests.browser.test_narrow import DESKTOP, MISPLACED, PHONE, SMALL
from tests.support import orders
from tests.support.provider import adapter
from tests.support.rest import RestApi
from tests.support.shop import Shop
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.browser


async def shop_with_orders(site: Site, count: int) -> tuple[Shop, list[dict[str, Any]]]:
    """Return a store of Maria and its orders; the first was canceled and paid afterwards."""
    api = RestApi(site)
    owner = await api.key_of(await site.user())
    body = {
        "hostname": "cafe.example", "name": "Café São João",
        "checkoutUrl": "https://pay.example/{orderNumber}?token={token}",
    }  # fmt: skip
    shop = Shop(api, owner, (await owner.post("/api/stores", body)).body)
    product = await orders.product(owner, storeId=shop.store["id"], name="Beans", stock=100)
    made = [await orders.placed(shop, {product: 1}, shipping=1290) for _ in range(count)]
    provider = await adapter(shop)
    assert (await orders.cancel(owner, made[0])).status == 200
    assert (await provider.report(made[0]["number"], 42.9, "ch_" + "9" * 60)).status == 200
    return shop, made


async def test_the_pages_of_orders_fit_and_can_be_read(
    chromium: Browser, site: Site, tmp_path: Path
) -> None:
    """In light and dark, on a phone and a desktop; screenshots are in `tmp_path`."""
    shop, made = await shop_with_orders(site, 3)
    store = f"/console/stores/{shop.store['id']}"
    paths = {
        "list": "/console/orders", "store": f"/console/orders?storeId={shop.store['id']}",
        "select": "/console/orders?status=pending&select=1",
        "order": f"/console/orders/{made[1]['id']}", "late": f"/console/orders/{made[0]['id']}",
        "pay": f"/console/orders/{made[1]['id']}/pay", "secret": f"{store}/payment-secret",
        "edit": f"{store}/edit", "shop": store,
    }  # fmt: skip
    found: dict[tuple[str, str], list[str]] = {}
    for scheme in ("light", "dark"):
        async with window(chromium, site, viewport=PHONE, color_scheme=scheme) as view:
            page = view.page
            await sign_in(view)
            for size in (PHONE, DESKTOP):
                await page.set_viewport_size({"width": size["width"], "height": size["height"]})
                for name, path in paths.items():
                    await view.open(path)
                    file = f"{name}-{scheme}-{size['width']}.png"
                    await page.screenshot(path=tmp_path / file, full_page=True)
                    wrong: list[str] = []
                    found[file, path] = wrong
                    for check in (MISPLACED, SMALL, CONTRAST, UNNAMED):
                        wrong += await page.evaluate(check)
                    if await page.evaluate(TOO_WIDE) > 0:
                        wrong.append("too wide")
    assert {page: wrong for page, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_shopkeeper_at_work(chromium: Browser, site: Site, scripts: bool) -> None:
    shop, made = await shop_with_orders(site, 5)
    async with window(chromium, site, java_script_enabled=scripts) as view:
        page = view.page
        await sign_in(view)
        await view.choose("Shop", "Stores")
        await page.get_by_role("link", name="cafe.example").click()
        await page.get_by_role("main").get_by_role("button", name="Orders").click()
        await page.get_by_role("link", name=made[1]["number"]).click()
        assert await page.get_by_text("R$42.90").count() >= 1
        await page.get_by_role("button", name="Mark paid").click()
        await page.get_by_label("Reference").fill("E18236120")
        await page.get_by_role("button", name="Mark paid").click()
        await page.get_by_text("Order marked as paid.").wait_for()

        await view.choose("Shop", "Orders")
        await page.get_by_role("button", name="Select orders").click()
        for order in made[2:4]:
            await page.get_by_label(f"Select {order['number']}").check()
        await page.get_by_role("button", name="Mark paid").click()
        await page.get_by_role("heading", name="Mark these 2 orders as paid?").wait_for()
        await page.get_by_text("R$ 85,80").wait_for()
        await page.get_by_role("button", name="Mark paid").click()
        await page.get_by_text("Orders marked as paid.").wait_for()
        if scripts:
            await page.get_by_role("button", name="Select all").click()
        else:
            await page.get_by_label(f"Select {made[4]['number']}").check()
        await page.get_by_role("button", name="Cancel orders").click()
        await page.get_by_role("button", name="Cancel orders").click()
        await page.get_by_text("Orders canceled.").wait_for()

        await view.open(f"/console/orders/{made[0]['id']}")
        await page.get_by_role("button", name="Mark as handled").click()
        await page.get_by_text("Marked as handled.").wait_for()
    statuses = [(await orders.order_of(shop.owner, one["id"]))["status"] for one in made]
    assert statuses == ["canceled", "paid", "paid", "paid", "canceled"]
