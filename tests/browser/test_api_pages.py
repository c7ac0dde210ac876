"""The API's document and GraphiQL in a browser: whole, from our own files, under our policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import Window, window
from tests.browser.faults import bars
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

OPENED = (
    "operations-Contacts-listContacts", "operations-Contacts-updateContact",
    "operations-Contacts-deleteContact", "operations-webhooks-onContactCreated",
)  # fmt: skip
"""Operations whose parts are all that the page has: parameters, a body, headers, responses."""
WIDTH = "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"


def elsewhere(view: Window) -> list[str]:
    """Return the list that will have each address outside the site that the page asks for."""
    asked: list[str] = []
    mine = (view.url, "data:", "blob:")
    view.page.on("request", lambda got: None if got.url.startswith(mine) else asked.append(got.url))
    return asked


async def opened(page: Page, operations: Sequence[str]) -> None:
    """Open operations, and execute the first of all."""
    for operation in operations:
        opened = page.locator(f"#{operation}")
        await opened.locator(".opblock-summary-control").click()
        await opened.locator(".responses-table").first.wait_for()
        if operation == OPENED[0]:
            # It calls this very server; now, as the window may not show it beside the others.
            await opened.get_by_role("button", name="Execute").click()
            status = opened.locator(".live-responses-table .response-col_status").last
            assert (await status.inner_text()).startswith("200")


@pytest.mark.parametrize(("scheme", "width", "height"), [
    ("light", 1280, 900),
    *(pytest.param(scheme, width, 20_000, marks=pytest.mark.proof)
      for scheme in ("light", "dark") for width in (1280, 375)),
])  # fmt: skip
async def test_the_document_is_shown_and_tried_without_the_network(
    chromium: Browser, site: Site, scheme: Any, width: int, height: int
) -> None:
    """Axe-core finds nothing serious, and nothing leaves the window.

    Swagger UI draws the operations that the window shows; the highest window shows all.
    """
    key = await site.key(await site.user())
    size: Any = {"width": width, "height": height}
    async with window(chromium, site.url, color_scheme=scheme, viewport=size) as view:
        page, asked = view.page, elsewhere(view)
        await view.open("/api/docs")
        await page.get_by_text("List contacts").first.wait_for()
        back = await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert (back == "rgb(28, 32, 34)") == (scheme == "dark")
        await page.get_by_role("button", name="Authorize").first.click()
        await page.locator("#api_key_value").fill(key)
        assert await bars(page, ".dialog-ux") == []
        await page.get_by_role("button", name="Authorize: apply credentials").first.click()
        await page.get_by_role("button", name="Close").last.click()
        await opened(page, OPENED if height > 900 else OPENED[1:2])
        assert await page.evaluate(WIDTH)
        assert await bars(page) == []
        assert asked == []


async def test_graphiql_runs_a_query_without_the_network(chromium: Browser, site: Site) -> None:
    key = await site.key(await site.user())
    store = {"hostname": "127.0.0.1", "name": "Coffee Shop"}
    made = await site.http.post("/api/stores", json=store, headers={"X-API-Key": key})
    assert made.status == 201
    async with window(chromium, site.url) as view:
        page, asked = view.page, elsewhere(view)
        await view.open("/graphql")
        await page.get_by_label("Execute query").click()
        await page.get_by_text('"Coffee Shop"').wait_for()
        # The explorer shows the schema, so introspection works from the page.
        await page.get_by_label("Show Documentation Explorer").click()
        await page.get_by_text("Mutation").first.wait_for()
        assert asked == []
