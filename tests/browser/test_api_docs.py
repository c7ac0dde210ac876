"""The page of the API's document in a real browser: whole, from our own files alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import window
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.browser


async def test_the_document_is_shown_without_the_network(chromium: Browser, site: Site) -> None:
    key = await site.key(await site.user())
    async with window(chromium, site) as view:
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
