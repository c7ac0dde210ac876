"""Deliveries, events and the course of a delivery, in both schemes and widths."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from outbox.database.transaction import Tx
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
    await page.locator("#delivery-rows tbody tr").nth(2).wait_for()
    failing = await page.locator("#delivery-rows tbody a").first.get_attribute("href")
    await view.open("/console/deliveries?state=delivered")
    await page.locator("#delivery-rows tbody tr").nth(3).wait_for()
    delivered = await page.locator("#delivery-rows tbody a").nth(1).get_attribute("href")
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


async def test_without_scripts_every_page_answers(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    """Filters, search, bodies, commands, the guide and the check need no script."""
    owner = await site.user()
    async with window(chromium, site) as view:
        await sign_in(view)
        paths = await furnish(site, box, view, owner)
    async with window(chromium, site, java_script_enabled=False) as view:
        page = view.page
        await sign_in(view)
        await view.choose("Developers", "Deliveries")
        await page.get_by_label("State").select_option("Delivered")
        await page.get_by_label("Response status").fill("200")
        await page.get_by_role("button", name="Show").click()
        assert await page.locator("#delivery-rows tbody tr").count() == 4
        await page.get_by_role("button", name="Clear").click()
        assert await page.locator("#delivery-rows tbody tr").count() == 7
        await page.locator("#delivery-rows tbody a").last.click()
        await page.get_by_text("Exact bytes").click()
        assert await page.get_by_test_id("delivery-body").is_visible()
        assert await page.get_by_role("button", name="Copy").count() == 0
        await page.get_by_role("link", name="The event").click()
        await page.get_by_role("link", name="All events of this record").click()
        assert await page.locator("#event-rows tbody tr").count() == 1
        await view.open(paths["guide"])
        await page.get_by_text("Ruby", exact=True).click()
        assert await page.get_by_test_id("check-ruby").is_visible()
        await page.get_by_role("textbox", name="Request").fill(
            "X-Webhook-Signature: sha256=00\n\n{}"
        )
        await page.get_by_role("button", name="Check signature").click()
        await page.get_by_text("was signed with another secret").wait_for()
        await view.open(paths["beside"])
        assert await page.get_by_test_id("totals").locator("tbody tr").count() == 6


async def test_a_delivered_request_is_copied_and_found_genuine(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    """The command that the page offers to copy passes the check; a changed one does not."""
    owner = await site.user()
    allowed = ["clipboard-read", "clipboard-write"]
    async with window(chromium, site, permissions=allowed) as view:
        page = view.page
        await sign_in(view)
        paths = await furnish(site, box, view, owner)
        await view.open(paths["delivered"])
        await page.get_by_text("As curl").click()
        await page.get_by_role("button", name="Copy the command").click()
        copied = await page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith("curl -X POST")
        await page.get_by_role("button", name="Copy body").click()
        body = await page.evaluate("navigator.clipboard.readText()")
        assert body.encode() in {got.body for got in box.got}
        to_webhook = await page.locator("#to-webhook").get_attribute("href")
        for text, says in (
            (copied, "right, made with the current secret"),
            (copied.replace("contact.created", "contact.deleted"), "signed with another secret"),
        ):
            await view.open(f"{to_webhook}/guide")
            await page.get_by_role("textbox", name="Request").fill(text)
            await page.get_by_role("button", name="Check signature").click()
            assert await page.get_by_test_id("verdict").get_by_text(says).count() == 2


async def test_what_was_opened_stays_open_when_the_page_refreshes_itself(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    owner = await site.user()
    async with window(chromium, site) as view:
        page = view.page
        await sign_in(view)
        paths = await furnish(site, box, view, owner)
        await view.open(paths["event"])
        await page.get_by_text("Exact bytes").click()
        delivery = page.locator("#event tbody a").first
        # Something changes: the page gets its part again.
        async with page.expect_response(lambda r: "seen=" in r.url and r.status == 200):
            await site.db.write(fail, (await delivery.get_attribute("href") or "")[-24:])
        await page.locator("#event .badge.is-dead").wait_for()
        assert await page.locator("#raw-body").evaluate("part => part.open")
        assert await page.get_by_role("button", name="Copy body").is_visible()


async def fail(tx: Tx, delivery_id: str) -> None:
    await tx.run("update deliveries set state = 'dead' where id = $1", delivery_id)
