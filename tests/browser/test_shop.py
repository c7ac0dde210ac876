"""The shops of the demo and of the docs: whole purchases, on one origin and across two."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from gateway.cli.demo import demo_goods
from gateway.cli.demo.demo_goods import Owner
from gateway.cli.demo.shop import Shop
from tests.architecture.tree import ROOT
from tests.browser.conftest import window
from tests.browser.faults import bars
from tests.support.drain import Inbox
from tests.support.rest import RestApi
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser, Route

HOSTNAME = "cafe.example"
EXAMPLE = ROOT / "docs" / "examples" / "shop" / "index.html"
PASSWORD = "a long password"
SIDEWAYS = """() => document.documentElement.scrollWidth > document.documentElement.clientWidth
  ? ["scrolls sideways"] : []"""
CLEAR = """mutation ($input: ShoppingCartClearMutationInput!) {
  shoppingCartClear(input: $input) { shoppingCart { totalQuantity } } }"""
SENT = """([url, body, options]) => fetch(`${url}/graphql`,
  { method: "POST", credentials: "include", body, ...options }).then(() => null)"""


@dataclass
class Open:
    """An open shop with its owner; `url` is where visitors find its page."""

    shop: Shop
    owner: Owner
    url: str

    async def forward(self, route: Route) -> None:
        """Answer from the server of the shop's page."""
        path = route.request.url.removeprefix(self.url)
        await route.fulfill(response=await route.fetch(url=self.shop.url + path))


def is_page(site: Site) -> Callable[[str], bool]:
    """Return whether an address at the API's origin is one of the page's."""
    return lambda url: url.startswith(site.url) and not url.endswith("/graphql")


@asynccontextmanager
async def started(site: Site) -> AsyncIterator[Shop]:
    """The server of the page of the demo's shop."""
    shop = Shop(site.url, HOSTNAME)
    try:
        await shop.start()
        yield shop
    finally:
        await shop.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def cafe(site: Site, request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    """The demo's shop: page and API share an origin, or have `two`."""
    key = await site.key(await site.user())
    async with started(site) as shop, aiohttp.ClientSession() as http:
        url = site.url if getattr(request, "param", "two") == "one" else shop.url
        shop.owner = Owner(http, site.url, key)
        await demo_goods.open_store(shop.owner, HOSTNAME, url)
        yield Open(shop, shop.owner, url)


@pytest.mark.parametrize(("cafe", "scheme", "width"), [
    pytest.param("one", "dark", 320, marks=pytest.mark.proof), ("two", "light", 1100),
], indirect=["cafe"])  # fmt: skip
async def test_a_whole_purchase(
    chromium: Browser, site: Site, cafe: Open, scheme: Any, width: int
) -> None:
    """Each page can be read and used by everybody."""
    look: Any = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    async with window(chromium, cafe.url, **look) as view:
        page = view.page
        if cafe.url == site.url:
            await page.route(is_page(site), cafe.forward)

        async def check() -> None:
            assert [*await bars(page), *await page.evaluate(SIDEWAYS)] == []

        await view.open("/")
        # The discount modal gives a coupon for an email address.
        dialog = page.get_by_role("dialog")
        await dialog.wait_for()
        await check()
        await dialog.get_by_label("Email").fill("maria@example.com")
        await dialog.get_by_role("button", name="Get my coupon").click()
        code = await dialog.get_by_test_id("coupon").text_content()
        assert code is not None
        assert code.startswith("HELLO-")
        await dialog.get_by_role("button", name="Close").click()

        await page.get_by_text("12 products").wait_for()
        await view.press("Show more")
        await page.locator(".card").nth(11).wait_for()
        await page.get_by_label("Category").select_option("coffee")
        await page.get_by_text("3 products").wait_for()
        await page.get_by_role("link", name="Espresso beans 1 kg").click()
        await page.get_by_role("heading", name="Espresso beans 1 kg", level=1).wait_for()
        await check()
        await page.get_by_label("Quantity").fill("2")
        await view.press("Add to cart")
        await page.get_by_text("Added to the cart.").wait_for()
        assert await page.locator("#cart-count").text_content() == "2"

        await page.get_by_role("link", name="Cart").click()
        await page.get_by_label("Code").fill(code)
        await view.press("Apply coupon")
        await page.get_by_text("takes 15 % off").wait_for()
        await page.get_by_label("CEP").fill("01310-100")
        await view.press("Find shipping")
        await page.get_by_label("Courier, 1 day").check()
        await page.get_by_text("Shipping is chosen.").wait_for()
        # The cart is drawn anew, and the keyboard stays where it was.
        assert await page.evaluate("document.activeElement.value") == "courier"
        # 2 x 109.90, less 15 %, and 12.90 for shipping.
        await page.get_by_test_id("total").get_by_text("R$\u00a0199,73").wait_for()
        await check()

        # The cart of the guest becomes the customer's.
        await page.get_by_role("link", name="Sign in").click()
        up = page.get_by_role("form", name="Create an account")
        await up.get_by_label("Full name").fill("Maria da Silva")
        await up.get_by_label("Email").fill("maria@example.com")
        await up.get_by_label("Password").fill(PASSWORD)
        await up.get_by_role("button", name="Create account").click()
        await page.get_by_role("heading", name="Hello, Maria da Silva").wait_for()
        assert await page.locator("#cart-count").text_content() == "2"

        cookies = {c["name"]: c for c in await page.context.cookies(site.url)}
        assert set(cookies) == {"authJwtClient", "cartSession"}
        for cookie in cookies.values():
            assert (cookie["httpOnly"], cookie["sameSite"], cookie["secure"], cookie["path"]) == (
                True, "Lax", False, "/",
            )  # fmt: skip
        assert await page.evaluate("document.cookie") == ""

        await page.get_by_role("link", name="Cart").click()
        await page.get_by_role("link", name="Go to checkout").click()
        for label, text in (
            ("CPF or CNPJ", "529.982.247-26"), ("Street", "Avenida Paulista"), ("Number", "1578"),
            ("City", "São Paulo"), ("State", "SP"),
        ):  # fmt: skip
            await page.get_by_label(label, exact=True).fill(text)
        assert await page.get_by_label("Name", exact=True).input_value() == "Maria da Silva"
        await view.press("Place order for R$\u00a0199,73")
        # A refusal is shown at its field.
        await page.locator("[name=document][aria-invalid]").wait_for()
        await check()
        await page.get_by_label("CPF or CNPJ").fill("529.982.247-25")
        await view.press("Place order")
        await page.get_by_role("heading", name="Order ORD-000001").wait_for()
        assert await page.get_by_test_id("status").text_content() == "pending"
        assert "pix@cafe.example" in (await page.get_by_label("Pix code").text_content() or "")
        assert await page.locator("#cart-count").text_content() == "0"
        await view.press("Pay as the demo's bank")
        await page.get_by_test_id("status").get_by_text("paid").wait_for()

        await page.goto(f"{view.url}/#/product/espresso-beans-1-kg")
        await page.get_by_label("Your review").fill("<b>Strong</b> & sweet")
        await view.press("Publish review")
        await page.get_by_text("<b>Strong</b> & sweet", exact=True).wait_for()
        await page.get_by_text("38 in stock").wait_for()
        await check()

        await page.get_by_role("link", name="Maria", exact=True).click()
        await page.get_by_role("link", name="ORD-000001").wait_for()
        await view.press("Sign out")
        await page.get_by_role("heading", name="New here?").wait_for()
        left = {c["name"] for c in await page.context.cookies(site.url)}
        assert "authJwtClient" not in left
    feed = await cafe.owner.call("GET", "/api/events?limit=100")
    told = [entry["event"] for entry in feed["data"]]
    for event in ("contact.created", "invoice.created", "deal.created", "invoice.paid"):
        assert told.count(event) == 1, told


async def test_a_page_that_no_store_allows_reads_and_changes_nothing(
    chromium: Browser, site: Site, cafe: Open
) -> None:
    async with window(chromium, cafe.url) as view, started(site) as stranger:
        page = view.page
        await view.open("/")
        await view.press("No, thanks", "Add Dripper to the cart")
        await page.get_by_text("Added to the cart.").wait_for()
        # The browser has the cookies of the visitor, and would send them from any port.
        await page.goto(stranger.url)
        await page.get_by_role("heading", name="That did not work").wait_for()
        variables: Any = {"input": {"hostname": HOSTNAME}}
        body = json.dumps({"query": CLEAR, "variables": variables})
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        for options in ({"mode": "no-cors"}, {"mode": "no-cors", "headers": form}):
            await page.evaluate(SENT, [site.url, body, options])
        typed = {"headers": {"Content-Type": "application/json"}}
        with pytest.raises(Exception, match="Failed to fetch"):
            await page.evaluate(SENT, [site.url, body, typed])
        asked = urlencode({"query": CLEAR, "variables": json.dumps(variables)})
        await page.goto(f"{site.url}/graphql?{asked}")
        await view.open("/#/cart")
        await page.get_by_label("Quantity of Dripper").wait_for()
        view.forgive("blocked by CORS policy|net::ERR_FAILED|server responded with a status of")


async def test_a_visitor_buys_on_the_page_of_the_docs(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    text = EXAMPLE.read_text().replace("http://localhost:8080", site.url)
    text = text.replace('data-hostname="localhost"', 'data-hostname="shop.example"')

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(text=text, content_type="text/html")

    box.answer = answer
    owner = await RestApi(site).key_of(await site.user())
    store = {
        "hostname": "shop.example", "name": "Shop", "allowedOrigins": [box.url], "language": "en",
    }  # fmt: skip
    store_id = (await owner.post("/api/stores", store)).body["id"]
    product = {"name": "Café", "price": 89.9, "stock": 5, "storeId": store_id, "published": True}
    assert (await owner.post("/api/products", product)).status == 201
    async with window(chromium, box.url) as view:
        page = view.page
        await view.open("/")
        await view.press("Add Café")
        await page.get_by_text("1 × Café: R$ 89,90").wait_for()
        await view.press("Add Café")
        await page.get_by_text("2 × Café: R$ 179,80").wait_for()
        assert await bars(page) == []
        await view.fill({"Name": "Maria", "E-mail": "maria@example.com"})
        await view.press("Order")
        await page.get_by_text("Your order is ORD-000001, R$ 179,80").wait_for()
        # The order has emptied the cart, which the API tells people.
        await view.press("Order")
        await page.get_by_text("empty").nth(1).wait_for()
