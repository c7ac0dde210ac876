"""Deliveries, events and the course of a delivery, in both schemes and widths."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from tests.browser.conftest import sign_in, window
from tests.browser.test_console import CONTRAST, TOO_WIDE, UNNAMED, make_webhook, send_test
from tests.browser.test_narrow import MISPLACED, PHONE, SMALL
from tests.support.drain import Inbox
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.browser

OPEN = 'document.querySelectorAll("details.raw").forEach((part) => { part.open = true; })'
WIDE: Any = {"width": 1280, "height": 900}


async def answer(request: web.Request) -> web.StreamResponse:
    if request.path.startswith("/down"):
        return web.Response(status=500, text="out of order " * 9)
    return web.Response(text="thanks")


async def furnish(site: Site, box: Inbox, view: Any, owner: str) -> dict[str, str]:
    """Three webhooks and some writes; return the paths to look at."""
    box.answer = answer
    fine = await make_webhook(view, f"{box.url}/fine/{'p' * 300}", "contact.created")
    down = await make_webhook(view, f"{box.url}/down", "contact.created", "contact.updated")
    deals = await make_webhook(view, f"{box.url}/deals", "deal.created")
    key = {"X-API-Key": await site.key(owner), "X-Request-Id": "r" * 60}
    record = ""
    for name in ("Ana", "João", "N" * 200):
        async with site.http.post("/api/contacts", json={"name": name}, headers=key) as made:
            assert made.status == 201
            record = (await made.json())["id"]
    page = view.page
    await view.open(f"/console/webhooks/{fine}")
    await send_test(view)
    await view.open("/console/deliveries?state=scheduled")
    await page.locator("#history-rows tbody tr").nth(2).wait_for()
    failing = await page.locator("#history-rows tbody a").first.get_attribute("href")
    await view.open("/console/deliveries?state=delivered")
    await page.locator("#history-rows tbody tr").nth(3).wait_for()
    delivered = await page.locator("#history-rows tbody a").nth(1).get_attribute("href")
    await view.open(f"/console/events?q={record}")
    event = await page.locator("#event-rows tbody a").first.get_attribute("href")
    assert failing
    assert delivered
    assert event
    return {
        "deliveries": "/console/deliveries", "filtered": "/console/deliveries?state=waiting",
        "found": f"/console/deliveries?q={record}", "none": "/console/deliveries?q=nothing",
        "events": "/console/events", "event": event, "failing": failing, "delivered": delivered,
        "guide": f"/console/webhooks/{deals}/guide", "beside": f"/console/charts?webhook={down}",
        "all-beside": "/console/charts", "overview": "/console",
    }  # fmt: skip


async def test_the_pages_fit_in_both_schemes_and_widths(
    chromium: Browser, site: Site, box: Inbox, tmp_path: Path
) -> None:
    """Contrast, names, headings and width; a screenshot of each page is in `tmp_path`."""
    owner = await site.user()
    found, paths = {}, dict[str, str]()
    for scheme in ("light", "dark"):
        async with window(
            chromium, site, color_scheme=scheme, viewport=WIDE, reduced_motion="reduce"
        ) as view:
            page = view.page
            await sign_in(view)
            paths = paths or await furnish(site, box, view, owner)
            for size in (PHONE, WIDE):
                await page.set_viewport_size({"width": size["width"], "height": size["height"]})
                for name, path in paths.items():
                    await view.open(path)
                    await page.evaluate(OPEN)
                    key = f"{name}-{scheme}-{size['width']}"
                    await page.screenshot(path=tmp_path / f"{key}.png", full_page=True)
                    wrong = await page.evaluate(CONTRAST) + await page.evaluate(UNNAMED)
                    wrong += await page.evaluate(MISPLACED) + await page.evaluate(SMALL)
                    if await page.evaluate(TOO_WIDE) > 0:
                        wrong.append("too wide")
                    found[key] = wrong
    assert {page: wrong for page, wrong in found.items() if wrong} == {}
