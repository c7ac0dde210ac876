"""Recovering, selecting and steering deliveries in a browser: both schemes, widths, no scripts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from gateway.server.app_keys import KEYRING
from tests.browser.conftest import sign_in, window
from tests.browser.test_console import CONTRAST, TOO_WIDE, UNNAMED, make_webhook
from tests.browser.test_history import WIDE
from tests.browser.test_narrow import MISPLACED, PHONE, SMALL
from tests.support.drain import Inbox, add_webhook
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.browser


async def gone_or_down(request: web.Request) -> web.StreamResponse:
    return web.Response(status=500 if request.path.startswith("/down") else 200, text="no")


async def write(site: Site, owner: str, *names: str) -> None:
    key = {"X-API-Key": await site.key(owner)}
    for name in names:
        async with site.http.post("/api/contacts", json={"name": name}, headers=key) as made:
            assert made.status == 201


async def test_a_job_runs_to_its_end_before_somebodys_eyes(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    owner = await site.user()
    async with window(chromium, site) as view:
        page = view.page
        await sign_in(view)
        await make_webhook(view, f"{box.url}/fine", "contact.created")
        await write(site, owner, "Ana", "Bia", "Caio")
        await box.until(3)
        late = await make_webhook(view, f"{box.url}/late", "contact.created")
        await view.open(f"/console/webhooks/{late}")
        await page.get_by_role("button", name="Send past events").click()
        await page.get_by_role("button", name="Count first").click()
        assert await page.get_by_test_id("job-total").text_content() == (
            "Will create 3 deliveries."
        )
        await page.get_by_role("button", name="Start", exact=True).click()
        # Nobody reloads the page.
        await page.locator("#job .is-done").wait_for()
        assert await page.get_by_test_id("job-made").text_content() == "3"
        assert await page.get_by_role("button", name="Cancel job").count() == 0
        assert len(await box.until(3, path="/late")) == 3


async def test_deliveries_are_selected_and_steered_without_scripts(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    owner = await site.user()
    box.answer = gone_or_down
    async with window(chromium, site, java_script_enabled=False) as view:
        page = view.page
        await sign_in(view)
        webhook_id, _ = await add_webhook(
            site.db, site.app[KEYRING], f"{box.url}/down", "contact.created", owner=owner
        )
        await write(site, owner, "Ana", "Bia")
        await box.until(2)
        await view.open(f"/console/webhooks/{webhook_id}/deliveries")
        await page.get_by_role("button", name="Select deliveries").click()
        for tick in await page.get_by_role("checkbox").all():
            await tick.check()
        await page.get_by_role("button", name="Replay selected").click()
        await page.get_by_text("2 of them are not finished").wait_for()
        await page.get_by_role("button", name="Send again").click()
        await page.get_by_text("Replays created").wait_for()
        await box.until(4)
        await page.locator("tbody a").first.click()
        await page.get_by_role("button", name="Cancel delivery").click()
        await page.get_by_text("Delivery canceled.").wait_for()


async def test_the_pages_fit_in_both_schemes_and_widths(
    chromium: Browser, site: Site, box: Inbox, tmp_path: Path
) -> None:
    """Contrast, names, headings and width; a screenshot of each page is in `tmp_path`."""
    owner = await site.user()
    box.answer = gone_or_down
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
                    if name == "asked":
                        await page.get_by_label("Delivered").check()
                        await page.get_by_role("button", name="Count first").click()
                        await page.get_by_text("Start this job?").last.wait_for()
                    if name == "question":
                        for tick in await page.get_by_role("checkbox").all():
                            await tick.check()
                        await page.get_by_role("button", name="Replay selected").click()
                        await page.get_by_text("Send these events again?").last.wait_for()
                    key = f"{name}-{scheme}-{size['width']}"
                    await page.screenshot(path=tmp_path / f"{key}.png", full_page=True)
                    wrong = await page.evaluate(CONTRAST) + await page.evaluate(UNNAMED)
                    wrong += await page.evaluate(MISPLACED) + await page.evaluate(SMALL)
                    if await page.evaluate(TOO_WIDE) > 0:
                        wrong.append("too wide")
                    found[key] = wrong
    assert {page: wrong for page, wrong in found.items() if wrong} == {}


async def furnish(site: Site, box: Inbox, view: Any, owner: str) -> dict[str, str]:
    """A webhook that fails, one that does not, and a job; return the paths to look at."""
    page = view.page
    down = await make_webhook(view, f"{box.url}/down/{'p' * 300}", "contact.created")
    fine = await make_webhook(view, f"{box.url}/fine", "contact.created", "deal.created")
    await write(site, owner, "Ana", "N" * 200)
    await box.until(4)
    recover = f"/console/webhooks/{fine}/recover"
    await view.open(recover)
    await page.get_by_label("Delivered").check()
    await page.get_by_role("button", name="Count first").click()
    await page.get_by_role("button", name="Start", exact=True).click()
    await page.locator("#job .is-done").wait_for()
    job = page.url.removeprefix(view.url).partition("?")[0]
    await view.open(f"/console/webhooks/{down}/deliveries?state=scheduled")
    waiting = await page.locator("tbody a").first.get_attribute("href")
    assert waiting
    return {
        "recover": recover, "backfill": f"{recover}?kind=backfill", "asked": recover, "job": job,
        "select": f"/console/webhooks/{down}/deliveries?select=1", "waiting": waiting,
        "question": f"/console/webhooks/{fine}/deliveries?select=1",
        "everywhere": "/console/deliveries?select=1",
        "webhook": f"/console/webhooks/{down}", "list": f"/console/webhooks/{fine}/deliveries",
    }  # fmt: skip
