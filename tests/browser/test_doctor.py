"""The doctor in a browser: in place with scripts, as a page without them, on a phone too."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from tests.browser.conftest import Window, sign_in, window
from tests.browser.test_console import CONTRAST, UNNAMED, make_webhook
from tests.browser.test_narrow import DESKTOP, MISPLACED, PHONE, SMALL
from tests.support.drain import Inbox
from tests.support.process import free_port
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.browser


async def examine(view: Window) -> str:
    """Press the button of the doctor; return the text of the result."""
    page = view.page
    await page.get_by_role("button", name="Examine receiver").first.click()
    result = page.get_by_test_id("examination")
    await result.wait_for()
    return await result.inner_text()


async def test_the_result_appears_in_place(chromium: Browser, site: Site, box: Inbox) -> None:
    ready, release = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        ready.set()
        await release.wait()
        return web.Response(status=401)

    box.answer = slow
    await site.user()
    async with window(chromium, site) as view:
        await sign_in(view)
        path = "/console/webhooks/" + await make_webhook(view, f"{box.url}/hook")
        await view.open(path)
        button = view.page.get_by_role("button", name="Examine receiver")
        await button.click()
        await ready.wait()
        assert await button.is_disabled()
        assert await view.page.get_by_text("The receiver is being examined").is_visible()
        release.set()
        result = view.page.get_by_test_id("examination")
        await result.wait_for()
        assert view.page.url.endswith(path)
        text = await result.inner_text()
        assert "A delivery would fail at this step: Response." in text
        assert "refused the signature" in text
        assert await button.is_enabled()
        # The part that polls leaves the result alone.
        async with view.page.expect_response(lambda response: "seen=" in response.url):
            pass
        assert await result.is_visible()


async def test_a_refusal_shows_its_page(chromium: Browser, site: Site, box: Inbox) -> None:
    await site.user()
    async with window(chromium, site) as view, window(chromium, site) as other:
        ready, release = asyncio.Event(), asyncio.Event()

        async def holds(request: web.Request) -> web.StreamResponse:
            ready.set()
            await release.wait()
            return web.Response()

        box.answer = holds
        await sign_in(view)
        path = "/console/webhooks/" + await make_webhook(view, f"{box.url}/hook")
        await sign_in(other)
        await other.open(path)
        await other.page.get_by_role("button", name="Examine receiver").click()
        await ready.wait()
        await view.open(path)
        await view.page.get_by_role("button", name="Examine receiver").click()
        await view.page.get_by_text("Another examination is running").wait_for()
        release.set()
        await other.page.get_by_test_id("examination").wait_for()
        # What the browser says of the response 429.
        assert all("429" in text for text in view.wrong)
        view.wrong.clear()


async def test_it_works_without_scripts(chromium: Browser, site: Site, box: Inbox) -> None:
    await site.user()
    async with window(chromium, site) as scripted:
        await sign_in(scripted)
        path = "/console/webhooks/" + await make_webhook(scripted, f"{box.url}/hook")
        cookies = await scripted.page.context.storage_state()
    async with window(chromium, site, java_script_enabled=False, storage_state=cookies) as view:
        page = view.page
        await view.open(path)
        await page.locator("form.examine button").first.click()
        text = await page.locator("[data-testid=examination]").text_content()
        assert "would succeed" in (text or "")
        assert page.url.endswith("/doctor")
        await page.locator("details.retries summary").click()
        assert await page.locator("[data-testid=retries]").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_it_fits_a_phone_and_a_desktop(
    chromium: Browser, site: Site, box: Inbox, tmp_path: Path, scheme: str
) -> None:
    """Screenshots are in `tmp_path`."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=500, headers={"X-" + "Long" * 40: "v" * 300}, text="x" * 900)

    box.answer = answer
    await site.user()
    found = {}
    # A mark that is still turning is wider than its place.
    still: Any = {"color_scheme": scheme, "reduced_motion": "reduce", "viewport": PHONE}
    async with window(chromium, site, **still) as view:
        await sign_in(view)
        good = await make_webhook(view, f"{box.url}/ok")
        failing = await make_webhook(view, f"{box.url}/{'p' * 300}")
        down = await make_webhook(view, f"http://127.0.0.1:{free_port()}/")
        for size in (PHONE, DESKTOP):
            await view.page.set_viewport_size({"width": size["width"], "height": size["height"]})
            for name, webhook_id in (("good", good), ("failing", failing), ("down", down)):
                box.answer = None if name == "good" else answer
                await view.open(f"/console/webhooks/{webhook_id}")
                await examine(view)
                await view.page.get_by_text("Retry schedule").click()
                if name != "down":
                    await view.page.get_by_test_id("attempt").locator("summary").click()
                file = tmp_path / f"{name}-{size['width']}-{scheme}.png"
                await view.page.screenshot(path=file, full_page=True)
                key = (name, size["width"])
                found[key] = await view.page.evaluate(MISPLACED)
                for fault in (SMALL, CONTRAST, UNNAMED):
                    found[key] += await view.page.evaluate(fault)
    assert {key: wrong for key, wrong in found.items() if wrong} == {}
