"""The options of a webhook in a browser: tried in place with scripts, as a page without them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Window, sign_in, window
from tests.browser.test_console import CONTRAST, UNNAMED, WEBHOOK
from tests.browser.test_narrow import DESKTOP, MISPLACED, PHONE, SMALL
from tests.support.drain import Inbox
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.browser

PICTURES = os.environ.get("OPTIONS_PICTURES", "")
CHECKS = (CONTRAST, UNNAMED, MISPLACED, SMALL)


async def fill(view: Window, url: str) -> None:
    """Fill the form with every option, of which one event never passes the filter."""
    page = view.page
    await view.open("/console/webhooks/new")
    await page.get_by_label("Receiver URL").fill(url)
    for event in ("deal.created", "deal.updated"):
        await page.get_by_label(event).check()
    await page.get_by_text("More options").click()
    await page.get_by_label("Filter").fill("status = open\nvalue is present")
    await page.get_by_label("Retry schedule").fill("5 s, 5 min, 2 h")
    await page.get_by_label("Send the events of each record in order").check()


async def test_the_options_are_tried_in_place_and_saved(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    await site.user()
    async with window(chromium, site) as view:
        page = view.page
        await sign_in(view)
        await fill(view, f"{box.url}/hook")
        await page.get_by_role("button", name="Try filter and schedule").click()
        outlook = page.get_by_test_id("outlook")
        await outlook.wait_for()
        assert page.url.endswith("/console/webhooks/new")
        text = await outlook.inner_text()
        assert "Passes" in text
        assert "deal.updated can never match: value is present." in text
        # What was typed is still there, and a second try replaces the first.
        await page.get_by_label("Filter").fill("")
        await page.get_by_text("Fields of the record", exact=True).click()
        for choice in ("status = won", "status changed", "status = won"):
            await page.get_by_role("button", name=choice, exact=True).first.click()
        typed = await page.get_by_label("Filter").input_value()
        assert typed == "status = won\nstatus changed\n"
        await page.get_by_role("button", name="Try filter and schedule").click()
        await page.get_by_text("This sample does not meet: status = won.").wait_for()
        assert await page.get_by_test_id("outlook").count() == 1
        await page.get_by_role("button", name="Create webhook").click()
        await page.wait_for_url(WEBHOOK)
        assert "Never sent" in (await page.get_by_test_id("filter").inner_text())
        assert await page.get_by_text("5 s, 5 min, 2 h").is_visible()


async def test_the_preview_is_a_page_without_scripts(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    await site.user()
    async with window(chromium, site, java_script_enabled=False) as view:
        page = view.page
        await sign_in(view)
        await fill(view, "")
        await page.get_by_role("button", name="Try filter and schedule").click()
        await page.get_by_test_id("outlook").wait_for()
        assert page.url.endswith("/console/webhooks/preview")
        assert await page.get_by_label("Retry schedule").input_value() == "5 s, 5 min, 2 h"
        await page.get_by_label("Receiver URL").fill(f"{box.url}/hook")
        await page.get_by_role("button", name="Create webhook").click()
        await page.wait_for_url("**/console/webhooks/*?done=created")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_the_pages_are_fit_to_read(
    chromium: Browser, site: Site, box: Inbox, scheme: str, viewport: dict[str, int]
) -> None:
    await site.user()
    shape = {"color_scheme": scheme, "viewport": viewport, "reduced_motion": "reduce"}
    async with window(chromium, site, **shape) as view:
        page = view.page
        await sign_in(view)
        await fill(view, f"{box.url}/hook")
        await page.get_by_role("button", name="Try filter and schedule").click()
        await page.get_by_test_id("outlook").wait_for()
        for details in await page.get_by_test_id("outlook").locator("summary").all():
            await details.click()
        found = {"form": [each for check in CHECKS for each in await page.evaluate(check)]}
        await _picture(view, f"form-{scheme}-{viewport['width']}")
        await page.get_by_role("button", name="Create webhook").click()
        await page.wait_for_url(WEBHOOK)
        found["page"] = [each for check in CHECKS for each in await page.evaluate(check)]
        await _picture(view, f"page-{scheme}-{viewport['width']}")
    assert found == {"form": [], "page": []}


async def _picture(view: Window, name: str) -> None:
    """Keep a picture for a person to look at, where the environment names a folder."""
    if PICTURES:
        await view.page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)
