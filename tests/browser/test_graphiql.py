"""GraphiQL in a real browser: whole, from our own files alone, under our policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import window
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.browser


async def test_graphiql_runs_a_query_without_the_network(chromium: Browser, site: Site) -> None:
    key = await site.key(await site.user())
    store = {"hostname": "127.0.0.1", "name": "Coffee Shop"}
    async with site.http.post("/api/stores", json=store, headers={"X-API-Key": key}) as made:
        assert made.status == 201
    async with window(chromium, site) as view:
        asked: list[str] = []
        view.page.on("request", lambda request: asked.append(request.url))
        await view.open("/graphql")
        await view.page.get_by_label("Execute query").wait_for()
        await view.page.get_by_label("Execute query").click()
        await view.page.get_by_text('"Coffee Shop"').wait_for()
        # The explorer shows the schema, so introspection works from the page.
        await view.page.get_by_label("Show Documentation Explorer").click()
        await view.page.get_by_text("Mutation").first.wait_for()
        mine = (site.url, "data:", "blob:")
        assert [url for url in asked if not url.startswith(mine)] == []
