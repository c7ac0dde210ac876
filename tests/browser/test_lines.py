"""The stuck records of an ordered webhook in a browser: seen with their age, tried now, skipped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from gateway.server.app_keys import KEYRING
from tests.browser.conftest import sign_in, window
from tests.browser.test_console import CONTRAST, UNNAMED
from tests.browser.test_narrow import DESKTOP, MISPLACED, PHONE, SMALL
from tests.support.drain import Inbox, add_webhook, make
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.browser

PICTURES = os.environ.get("LINES_PICTURES", "")
CHECKS = (CONTRAST, UNNAMED, MISPLACED, SMALL)
RECORDS = ("stuck-1", "stuck-1", "stuck-1", "fine", "fine", "stuck-2", "stuck-2")


async def refuse(request: web.Request) -> web.StreamResponse:
    """Refuse what is about some records."""
    record = (await request.json())["data"]["id"]
    return web.Response(status=500 if record.startswith("stuck") else 200)


async def stuck(site: Site, box: Inbox) -> str:
    """Return the path of a webhook with two stuck records."""
    owner = await site.user()
    box.answer = refuse
    ring = site.app[KEYRING]
    webhook_id, _ = await add_webhook(
        site.db, ring, f"{box.url}/hook", "thing.made",
        owner=owner, ordered=True, schedule=(3600.0,) * 3,
    )  # fmt: skip
    for record in RECORDS:
        await site.db.write(make, record, owner=owner)
    await box.until(4)
    return f"/console/webhooks/{webhook_id}"


async def test_a_head_is_tried_now_and_another_one_skipped(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    here = await stuck(site, box)
    async with window(chromium, site, java_script_enabled=False) as view:
        page = view.page
        await sign_in(view)
        await view.open(here)
        lines = page.locator("#lines tbody tr")
        assert await lines.count() == 2
        assert "stuck-1" in await lines.first.inner_text()
        box.answer = None
        await lines.first.get_by_role("button", name="Try now").click()
        await box.until(4 + 3)
        await view.open(here)
        assert await lines.count() == 1
        await lines.first.get_by_role("button", name="Skip").click()
        assert await page.get_by_text("Delivery skipped").is_visible()
        await box.until(4 + 4)
        arrived = [got.body.decode().split('"id":"')[1].split('"')[0] for got in box.got[4:]]
        assert arrived == ["stuck-1"] * 3 + ["stuck-2"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_the_stuck_records_are_fit_to_read(
    chromium: Browser, site: Site, box: Inbox, scheme: str, viewport: dict[str, int]
) -> None:
    here = await stuck(site, box)
    shape = {"color_scheme": scheme, "viewport": viewport, "reduced_motion": "reduce"}
    async with window(chromium, site, **shape) as view:
        page = view.page
        await sign_in(view)
        await view.open(here)
        await page.locator("#lines table").wait_for()
        found = [each for check in CHECKS for each in await page.evaluate(check)]
        if PICTURES:
            place = Path(PICTURES) / f"lines-{scheme}-{viewport['width']}.png"
            await page.screenshot(path=place, full_page=True)
        await page.locator("#lines tbody a").first.click()
        await page.get_by_text("later deliveries of this record").wait_for()
        found += [each for check in CHECKS for each in await page.evaluate(check)]
    assert found == []
