"""The shop page of docs/examples in a real browser: a product, the cart, an order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from tests.architecture.tree import ROOT
from tests.browser.conftest import window
from tests.browser.faults import bars
from tests.support.process import free_port
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser

PAGE = ROOT / "docs" / "examples" / "shop" / "index.html"


async def test_a_visitor_buys(chromium: Browser, site: Site) -> None:
    port = free_port()
    origin = f"http://127.0.0.1:{port}"
    headers = {"X-API-Key": await site.key(await site.user())}
    store = {"hostname": "shop.example", "name": "Shop", "allowedOrigins": [origin]}
    async with site.http.post("/api/stores", json=store, headers=headers) as made:
        store_id = (await made.json())["id"]
    product = {
        "name": "Café", "price": 89.9, "stock": 5, "storeId": store_id, "published": True,
    }  # fmt: skip
    async with site.http.post("/api/products", json=product, headers=headers) as made:
        assert made.status == 201, await made.text()
    text = PAGE.read_text().replace("http://localhost:8080/graphql", f"{site.url}/graphql")
    text = text.replace('data-hostname="localhost"', 'data-hostname="shop.example"')

    async def page(request: web.Request) -> web.Response:
        return web.Response(text=text, content_type="text/html")

    app = web.Application()
    app.router.add_get("/", page)
    app.router.add_get("/favicon.ico", page)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        async with window(chromium, site.url) as view:
            await view.page.goto(origin)
            await view.page.get_by_role("button", name="Add Café").click()
            await view.page.get_by_text("1 × Café: R$ 89,90").wait_for()
            await view.page.get_by_role("button", name="Add Café").click()
            await view.page.get_by_text("2 × Café: R$ 179,80").wait_for()
            assert await bars(view.page) == []
            await view.page.get_by_label("Name").fill("Maria")
            await view.page.get_by_label("E-mail").fill("maria@example.com")
            await view.page.get_by_role("button", name="Order").click()
            await view.page.get_by_text("Your order is ORD-000001, R$ 179,80").wait_for()
            # The order has emptied the cart, which the API tells people.
            await view.page.get_by_role("button", name="Order").click()
            await view.page.get_by_text("empty").nth(1).wait_for()
    finally:
        await runner.cleanup()
