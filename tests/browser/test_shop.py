"""The demo's shop page: a whole purchase by mouse, on one origin and across two."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import aiohttp
import pytest
import pytest_asyncio

from gateway.cli.demo import goods
from gateway.cli.demo.goods import Owner
from gateway.cli.demo.shop import Shop
from gateway.graphql.ids import global_id
from tests.browser.conftest import Window, window
from tests.browser.faults import bars
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser, Route

HOSTNAME = "cafe.example"
SIDEWAYS = """() => document.documentElement.scrollWidth > document.documentElement.clientWidth
  ? ["scrolls sideways"] : []"""
PASSWORD = "a long password"


@dataclass
class Open:
    """An open shop with its owner."""

    shop: Shop
    owner: Owner
    store: Any
    origin: str
    """`two`: page and API have each their own; `one`: they share the API's."""

    async def events(self) -> list[str]:
        feed = await self.owner.call("GET", "/api/events?limit=100")
        return [entry["event"] for entry in feed["data"]]


@pytest_asyncio.fixture(loop_scope="session")
async def cafe(site: Site, request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    """The demo's shop in front of the gateway of the test."""
    origin = getattr(request, "param", "two")
    key = await site.key(await site.user())
    shop = Shop(site.url, HOSTNAME)
    try:
        await shop.start()
        async with aiohttp.ClientSession() as http:
            owner = Owner(http, site.url, key)
            page = shop.url if origin == "two" else site.url
            store = await goods.open_store(owner, HOSTNAME, page)
            shop.owner = owner
            yield Open(shop, owner, store, origin)
    finally:
        await shop.stop()


@asynccontextmanager
async def visiting(
    chromium: Browser, site: Site, cafe: Open, **options: Any
) -> AsyncIterator[Window]:
    """A visitor of the page."""
    async with window(chromium, site.url, **options) as view:
        view.url = cafe.shop.url
        if cafe.origin == "one":
            view.url = site.url

            async def forward(route: Route) -> None:
                path = route.request.url.removeprefix(site.url)
                await route.fulfill(response=await route.fetch(url=cafe.shop.url + path))

            await view.page.route(
                lambda url: url.startswith(site.url) and not url.endswith("/graphql"), forward
            )
        yield view


@pytest.mark.parametrize(("cafe", "scheme", "width"), [
    pytest.param("one", "dark", 320, marks=pytest.mark.proof), ("two", "light", 1100),
], indirect=["cafe"])  # fmt: skip
async def test_a_whole_purchase(
    chromium: Browser, site: Site, cafe: Open, scheme: Any, width: int
) -> None:
    """Each page can be read and used by everybody."""
    look = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    async with visiting(chromium, site, cafe, **look) as view:
        page = view.page

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
        await page.get_by_role("button", name="Show more").click()
        await page.locator(".card").nth(11).wait_for()
        await page.get_by_label("Category").select_option("coffee")
        await page.get_by_text("3 products").wait_for()
        await page.get_by_role("link", name="Espresso beans 1 kg").click()
        await page.get_by_role("heading", name="Espresso beans 1 kg", level=1).wait_for()
        await check()
        await page.get_by_label("Quantity").fill("2")
        await page.get_by_role("button", name="Add to cart").click()
        await page.get_by_text("Added to the cart.").wait_for()
        assert await page.locator("#cart-count").text_content() == "2"

        await page.get_by_role("link", name="Cart").click()
        await page.get_by_label("Code").fill(code)
        await page.get_by_role("button", name="Apply coupon").click()
        await page.get_by_text("takes 15 % off").wait_for()
        await page.get_by_label("CEP").fill("01310-100")
        await page.get_by_role("button", name="Find shipping").click()
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
        await page.get_by_role("button", name="Place order for R$\u00a0199,73").click()
        # A refusal is shown at its field.
        await page.locator("[name=document][aria-invalid]").wait_for()
        await check()
        await page.get_by_label("CPF or CNPJ").fill("529.982.247-25")
        await page.get_by_role("button", name="Place order").click()
        await page.get_by_role("heading", name="Order ORD-000001").wait_for()
        assert await page.get_by_test_id("status").text_content() == "pending"
        assert "pix@cafe.example" in (await page.get_by_label("Pix code").text_content() or "")
        assert await page.locator("#cart-count").text_content() == "0"
        await page.get_by_role("button", name="Pay as the demo's bank").click()
        await page.get_by_test_id("status").get_by_text("paid").wait_for()

        await page.goto(f"{view.url}/#/product/espresso-beans-1-kg")
        await page.get_by_label("Your review").fill("<b>Strong</b> & sweet")
        await page.get_by_role("button", name="Publish review").click()
        await page.get_by_text("<b>Strong</b> & sweet", exact=True).wait_for()
        await page.get_by_text("38 in stock").wait_for()
        await check()

        await page.get_by_role("link", name="Maria", exact=True).click()
        await page.get_by_role("link", name="ORD-000001").wait_for()
        await page.get_by_role("button", name="Sign out").click()
        await page.get_by_role("heading", name="New here?").wait_for()
        left = {c["name"] for c in await page.context.cookies(site.url)}
        assert "authJwtClient" not in left
        inside = page.get_by_role("form", name="Sign in")
        await inside.get_by_label("Email").fill("Maria@Example.com")
        await inside.get_by_label("Password").fill(PASSWORD)
        await inside.get_by_role("button", name="Sign in").click()
        await page.get_by_role("heading", name="Hello, Maria da Silva").wait_for()
    told = await cafe.events()
    for event in ("contact.created", "invoice.created", "deal.created", "invoice.paid"):
        assert told.count(event) == 1, told


SENT = """async ([url, hostname, document, input, options]) => {
  const variables = { input: { hostname, ...input } };
  const response = await fetch(`${url}/graphql`, { method: "POST", ...options,
    body: JSON.stringify({ query: document, variables }) });
  return options.mode === "no-cors" ? null
    : [response.headers.get("X-Cart-Session"), await response.json()];
}"""
ADD = """mutation ($input: ShoppingCartAddProductMutationInput!) {
  shoppingCartAddProduct(input: $input) { shoppingCart { totalQuantity } } }"""
CLEAR = """mutation ($input: ShoppingCartClearMutationInput!) {
  shoppingCartClear(input: $input) { shoppingCart { totalQuantity } } }"""
JSON: dict[str, Any] = {"headers": {"Content-Type": "application/json"}, "credentials": "include"}


@pytest_asyncio.fixture(loop_scope="session")
async def stranger(site: Site, cafe: Open) -> AsyncIterator[Shop]:
    """The same page on an origin that no store allows."""
    shop = Shop(site.url, HOSTNAME)
    try:
        await shop.start()
        yield shop
    finally:
        await shop.stop()


async def test_a_page_that_no_store_allows_reads_and_changes_nothing(
    chromium: Browser, site: Site, cafe: Open, stranger: Shop
) -> None:
    async with visiting(chromium, site, cafe) as view:
        page = view.page
        await view.open("/")
        await page.get_by_role("button", name="No, thanks").click()
        await page.get_by_role("button", name="Add Dripper to the cart").click()
        await page.get_by_text("Added to the cart.").wait_for()
        # The browser has the cookies of the visitor, and would send them from any port.
        await page.goto(stranger.url)
        await page.get_by_role("heading", name="That did not work").wait_for()
        plain = {"credentials": "include", "mode": "no-cors"}
        forms = [plain, {**plain, "headers": {"Content-Type": "application/x-www-form-urlencoded"}}]
        for options in forms:
            await page.evaluate(SENT, [site.url, HOSTNAME, CLEAR, {}, options])
        with pytest.raises(Exception, match="Failed to fetch"):
            await page.evaluate(SENT, [site.url, HOSTNAME, CLEAR, {}, JSON])
        asked = urlencode(
            {"query": CLEAR, "variables": json.dumps({"input": {"hostname": HOSTNAME}})}
        )
        await page.goto(f"{site.url}/graphql?{asked}")
        await page.goto(f"{cafe.shop.url}/#/cart")
        await page.get_by_label("Quantity of Dripper").wait_for()
        view.forgive("blocked by CORS policy|net::ERR_FAILED|server responded with a status of")


async def test_a_page_on_another_site_keeps_its_cart_by_the_header(
    chromium: Browser, site: Site, cafe: Open
) -> None:
    page_url = cafe.shop.url.replace("127.0.0.1", "localhost")
    path = f"/api/stores/{cafe.store['id']}"
    await cafe.owner.call("PUT", path, {"allowedOrigins": [page_url]})
    products = await cafe.owner.call("GET", "/api/products?search=dripper")
    added = {"productId": global_id("Product", products["data"][0]["id"])}
    async with window(chromium, site.url) as view:
        await view.page.goto(f"{page_url}/shop.css")

        async def send(document: str, given: dict[str, str], **headers: str) -> tuple[str, Any]:
            options = {**JSON, "headers": {**JSON["headers"], **headers}}
            sent = [site.url, HOSTNAME, document, given, options]
            token, body = await view.page.evaluate(SENT, sent)
            return token, body["data"]["shoppingCartAddProduct"]["shoppingCart"]["totalQuantity"]

        token, quantity = await send(ADD, added)
        assert quantity == 1
        # Browsers do not send Lax cookies from another site, so this is a new visitor.
        assert (await send(ADD, added))[1] == 1
        assert (await send(ADD, added, **{"X-Cart-Session": token}))[1] == 2
