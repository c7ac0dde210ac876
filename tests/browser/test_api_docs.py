"""The page of the API's document in a real browser: whole, from our own files alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.browser.axe import axe
from tests.browser.conftest import window
from tests.browser.test_narrow import DESKTOP, PHONE
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.browser

PICTURES = os.environ.get("API_DOCS_PICTURES", "")
OPENED = (
    "operations-Contacts-listContacts", "operations-Contacts-updateContact",
    "operations-Contacts-deleteContact", "operations-webhooks-onContactCreated",
)  # fmt: skip
"""Operations whose parts are all that the page has: parameters, a body, headers, responses."""
WIDTH = "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"


async def test_the_document_is_shown_without_the_network(chromium: Browser, site: Site) -> None:
    key = await site.key(await site.user())
    # Swagger UI draws the operations that the window shows; this one shows all.
    async with window(chromium, site, viewport={"width": 1280, "height": 20_000}) as view:
        asked: list[str] = []
        view.page.on("request", lambda request: asked.append(request.url))
        await view.open("/api/docs")
        await view.page.get_by_text("List companies").wait_for()
        await view.page.get_by_text("contact.created").first.wait_for()
        # Tried out, it calls this very server.
        await view.page.get_by_role("button", name="Authorize").click()
        await view.page.locator("#api_key_value").fill(key)
        await view.page.get_by_role("button", name="Apply credentials").first.click()
        await view.page.get_by_role("button", name="Close").last.click()
        await view.page.get_by_text("Read your account").click()
        await view.page.get_by_role("button", name="Execute").click()
        await view.page.get_by_text("maria@example.com").first.wait_for()
        mine = (site.url, "data:", "blob:")
        assert [url for url in asked if not url.startswith(mine)] == []
        assert f"{site.url}/api/me" in asked


async def opened(page: Page) -> None:
    """Open some operations, and execute one of them."""
    for place, operation in enumerate(OPENED):
        opened = page.locator(f"#{operation}")
        await opened.locator(".opblock-summary-control").click()
        await opened.locator(".responses-table").first.wait_for()
        if place == 0:
            # Now: once the others are open, the window may no longer show it.
            await opened.get_by_role("button", name="Execute").click()
            await opened.locator(".live-responses-table").wait_for()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("shape", [DESKTOP, PHONE], ids=["wide", "phone"])
async def test_everybody_can_use_it(
    chromium: Browser, site: Site, scheme: str, shape: dict[str, int]
) -> None:
    """Axe-core finds nothing serious, in both colour schemes, and nothing leaves the window."""
    key = await site.key(await site.user())
    whole = {**shape, "height": 20_000}
    async with window(chromium, site, color_scheme=scheme, viewport=whole) as view:
        page = view.page
        page.set_default_timeout(90_000)
        await view.open("/api/docs")
        await page.get_by_text("List contacts").wait_for()
        dark = await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert (dark == "rgb(28, 32, 34)") == (scheme == "dark")
        await page.get_by_role("button", name="Authorize").first.click()
        await page.locator("#api_key_value").fill(key)
        await axe(page, ".dialog-ux")
        await page.get_by_role("button", name="Authorize: apply credentials").first.click()
        await page.get_by_role("button", name="Close").last.click()
        await opened(page)
        assert await page.evaluate(WIDTH)
        if PICTURES:
            await page.locator(f"#{OPENED[0]}").scroll_into_view_if_needed()
            await page.screenshot(path=f"{PICTURES}/{scheme}-{shape['width']}.png")
            await page.locator(f"#{OPENED[1]}").screenshot(
                path=f"{PICTURES}/{scheme}-{shape['width']}-put.png"
            )
        await axe(page)
