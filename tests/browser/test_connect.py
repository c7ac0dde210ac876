"""A connect link in a browser: an app without a key gets a verified delivery after one click."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from standardwebhooks import Webhook

from tests.browser.conftest import Window, sign_in, window
from tests.browser.test_narrow import MISPLACED, PHONE
from tests.support.connected import EVENT, Zappy, config_of, zappy
from tests.support.drain import Inbox
from tests.support.site import Site, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser

    from outbox.database.transaction import Database

pytestmark = pytest.mark.browser


@pytest.fixture
async def app(box: Inbox) -> AsyncIterator[Zappy]:
    async with zappy(box.url) as app:
        yield app


@pytest.fixture
async def site(db: Database, app: Zappy) -> AsyncIterator[Site]:
    async with serving(db, config_of(app.app), role="all") as site:
        app.carteiro = site.url
        yield site


async def begin(view: Window, app: Zappy) -> None:
    """Follow the link of the app."""
    await view.page.goto(app.origin)
    await view.page.get_by_role("link", name="Connect").click()
    await view.page.get_by_test_id("connect").wait_for()


async def test_one_click_and_the_app_gets_a_verified_delivery(
    chromium: Browser, site: Site, app: Zappy, box: Inbox
) -> None:
    key = await site.key(await site.user())
    async with window(chromium, site) as view:
        await sign_in(view)
        await begin(view, app)
        await view.page.get_by_role("button", name="Allow", exact=True).click()
        await view.page.get_by_text("Connected.").wait_for()
        assert view.page.url.startswith(f"{app.origin}/connected?from=carteiro&code=")
    [granted] = app.granted
    created = await site.http.post(
        "/api/contacts", json={"name": "Ana"}, headers={"X-API-Key": key}
    )
    assert created.status == 201
    [got] = await box.until(1)
    assert got.path == "/hooks/7"
    assert got.headers["X-Webhook-Event"] == EVENT
    Webhook(granted["secret"]).verify(got.body, dict(got.headers))


async def test_who_signs_in_on_the_way_comes_back_to_the_same_question(
    chromium: Browser, site: Site, app: Zappy
) -> None:
    await site.user()
    async with window(chromium, site, viewport=PHONE) as view:
        await view.page.goto(app.origin)
        await view.page.get_by_role("link", name="Connect").click()
        await view.page.get_by_label("Email").fill("maria@example.com")
        await view.page.get_by_label("Password").fill("correct horse battery")
        await view.page.get_by_role("button", name="Sign in").click()
        await view.page.get_by_test_id("connect").wait_for()
        assert await view.page.evaluate(MISPLACED) == []
        await view.page.get_by_role("button", name="Do not allow").click()
        await view.page.get_by_text("Not connected: access_denied.").wait_for()
    assert app.granted == []


async def test_a_code_of_another_session_is_refused_by_the_app(
    chromium: Browser, site: Site, app: Zappy
) -> None:
    """Somebody begins a flow and has the owner finish it: the state is not that of his browser."""
    await site.user()
    async with window(chromium, site) as view:
        await sign_in(view)
        await begin(view, app)
        await view.open(app.link("somebody else"))
        await view.page.get_by_role("button", name="Allow", exact=True).click()
        await view.page.get_by_text("Not your session.").wait_for()
        view.wrong = [one for one in view.wrong if "400 (Bad Request)" not in one]
    assert app.granted == []
    assert len(app.refused) == 1
