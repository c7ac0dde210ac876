"""The banner about webhooks in trouble and the form of operational webhooks, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from outbox.database.transaction import Tx
from tests.browser.conftest import Window, sign_in, window
from tests.browser.test_console import CONTRAST, TOO_WIDE, UNNAMED, make_webhook, send_test
from tests.browser.test_narrow import DESKTOP, MISPLACED, PHONE, SMALL
from tests.support.drain import Inbox
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.browser

NEW = "/console/webhooks/new?kind=operational"


async def furnish(view: Window, site: Site, box: Inbox) -> list[str]:
    """Make an operational webhook and five in trouble, one by its own answer; return the pages."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=410 if request.path.startswith("/gone") else 200)

    box.answer = answer
    page = view.page
    await view.open(NEW)
    await page.get_by_label("Receiver URL").fill(f"{box.url}/told")
    await page.get_by_role("button", name="Create webhook").click()
    await page.get_by_test_id("webhook-secret").wait_for()
    gone = await make_webhook(view, f"{box.url}/gone/{'p' * 300}")
    await send_test(view)
    await page.get_by_text("Disabled: no events are sent").wait_for()
    failing = await make_webhook(view, f"{box.url}/failing")
    await site.db.write(run, "update webhooks set circuit = 'open' where id = $1", failing)
    for number in range(3):
        old = await make_webhook(view, f"{box.url}/{number}")
        await site.db.write(run, "update webhooks set state = 'disabled' where id = $1", old)
    return [
        NEW, "/console/webhooks", "/console", f"/console/webhooks/{gone}",
        f"/console/webhooks/{failing}", "/console/account",
    ]  # fmt: skip


async def run(tx: Tx, sql: str, *args: object) -> int:
    return await tx.run(sql, *args)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_pages_can_be_read_by_everybody(
    chromium: Browser, site: Site, box: Inbox, tmp_path: Path, scheme: str
) -> None:
    """Contrast, names, headings and width; a screenshot of each page is in `tmp_path`."""
    found = {}
    await site.user()
    async with window(chromium, site, color_scheme=scheme, viewport=DESKTOP) as view:
        await sign_in(view)
        pages = await furnish(view, site, box)
        for size in (PHONE, DESKTOP):
            await view.page.set_viewport_size({"width": size["width"], "height": size["height"]})
            for number, path in enumerate(pages):
                await view.open(path)
                name = f"{number:02d}-{scheme}-{size['width']}.png"
                await view.page.screenshot(path=tmp_path / name, full_page=True)
                wrong = await view.page.evaluate(CONTRAST) + await view.page.evaluate(UNNAMED)
                wrong += await view.page.evaluate(MISPLACED) + await view.page.evaluate(SMALL)
                if await view.page.evaluate(TOO_WIDE) > 0:
                    wrong.append("too wide")
                found[name, path] = wrong
    assert {page: wrong for page, wrong in found.items() if wrong} == {}


async def test_it_works_without_scripts(chromium: Browser, site: Site, box: Inbox) -> None:
    await site.user()
    async with window(chromium, site, java_script_enabled=False) as view:
        page = view.page
        await view.open(NEW)
        await page.locator("#email").fill("maria@example.com")
        await page.locator("#password").fill("correct horse battery")
        await page.locator("button[type=submit]").click()
        await view.open(NEW)
        await page.locator("#url").fill(f"{box.url}/told")
        await page.locator("form.card button[type=submit]").first.click()
        assert await page.locator("[data-testid=webhook-secret]").is_visible()
        await page.locator("#event").select_option("delivery.exhausted")
        await page.locator("form.inline button").click()
        [got] = await box.until(1)
        assert got.headers["X-Webhook-Event"] == "delivery.exhausted"
        assert got.headers["X-Webhook-Test"] == "1"
