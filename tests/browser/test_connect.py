"""A connect link in a browser: an app without a key gets a verified delivery after one click."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from standardwebhooks import Webhook

from gateway.server.config import Config
from tests.browser.conftest import window
from tests.gateway.console.webhooks.test_connect import EVENT, Zappy, config_of, zappy
from tests.support.drain import Inbox
from tests.support.site import PASSWORD, Site

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser


@pytest_asyncio.fixture(loop_scope="session")
async def app(box: Inbox) -> AsyncIterator[Zappy]:
    async with zappy(box.url) as app:
        yield app


@pytest.fixture
def config(app: Zappy) -> Config:
    return config_of(app.app)


async def test_who_signs_in_on_the_way_connects_an_app_by_one_click(
    chromium: Browser, site: Site, app: Zappy, box: Inbox
) -> None:
    """The policy of the page lets its form lead to the origin of the app, and there alone."""
    app.carteiro = site.url
    key = await site.key(await site.user())
    async with window(chromium, site.url) as view:
        page = view.page
        await page.goto(app.origin)
        await page.get_by_role("link", name="Connect").click()
        await view.fill({"Email": "maria@example.com", "Password": PASSWORD})
        await view.press("Sign in", "Do not allow")
        await page.get_by_text("Not connected: access_denied.").wait_for()
        assert app.granted == []
        await page.goto(app.origin)
        await page.get_by_role("link", name="Connect").click()
        await page.get_by_role("button", name="Allow", exact=True).click()
        await page.get_by_text("Connected.").wait_for()
        assert page.url.startswith(f"{app.origin}/connected?from=carteiro&code=")
    [granted] = app.granted
    headers = {"X-API-Key": key}
    created = await site.http.post("/api/contacts", json={"name": "Ana"}, headers=headers)
    assert created.status == 201
    [got] = await box.until(1)
    assert got.path == "/hooks/7"
    assert got.headers["X-Webhook-Event"] == EVENT
    Webhook(granted["secret"]).verify(got.body, dict(got.headers))
