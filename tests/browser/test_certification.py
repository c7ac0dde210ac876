"""The certification in a browser: in place with scripts, as a page without them, on a phone too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import sign_in, window
from tests.browser.test_console import CONTRAST, UNNAMED, make_webhook
from tests.browser.test_narrow import DESKTOP, MISPLACED, PHONE, SMALL
from tests.support.drain import Inbox
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.browser


async def test_the_report_appears_in_place_and_fits(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    await site.user()
    found = {}
    # A mark that is still turning is wider than its place.
    still: Any = {"reduced_motion": "reduce", "viewport": PHONE}
    async with window(chromium, site, **still) as view:
        await sign_in(view)
        path = "/console/webhooks/" + await make_webhook(view, f"{box.url}/hook")
        for size in (PHONE, DESKTOP):
            await view.page.set_viewport_size({"width": size["width"], "height": size["height"]})
            await view.open(path)
            await view.page.get_by_role("button", name="Certify receiver").click()
            report = view.page.get_by_test_id("certification")
            await report.wait_for()
            # The inbox verifies nothing.
            text = await report.inner_text()
            assert "The receiver fails." in text
            assert "Compute the signature and compare it with webhook-signature" in text
            assert view.page.url.endswith(path)
            await report.locator("summary").click()
            for fault in (MISPLACED, SMALL, CONTRAST, UNNAMED):
                found[size["width"], fault] = await view.page.evaluate(fault)
    assert [wrong for wrong in found.values() if wrong] == []


async def test_it_works_without_scripts(chromium: Browser, site: Site, box: Inbox) -> None:
    await site.user()
    async with window(chromium, site) as scripted:
        await sign_in(scripted)
        path = "/console/webhooks/" + await make_webhook(scripted, f"{box.url}/hook")
        cookies = await scripted.page.context.storage_state()
    async with window(chromium, site, java_script_enabled=False, storage_state=cookies) as view:
        await view.open(path)
        await view.page.locator("form[action$=certify] button").click()
        report = view.page.locator("[data-testid=certification]")
        assert "The receiver fails." in (await report.text_content() or "")
        assert view.page.url.endswith("/certify")
