"""What scripts show in place, where without them a page would follow: results, totals, copies."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web

from tests.browser.conftest import Window, sign_in, webhook, window
from tests.browser.faults import faults
from tests.support.drain import Inbox, make
from tests.support.rest import RestApi
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser


async def test_an_examination_and_a_certification_appear_in_place(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    """The part that polls leaves the result alone; a refusal shows its page."""
    asked, release = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        asked.set()
        await release.wait()
        return web.Response(status=401)

    box.answer = slow
    here = await webhook(site, await site.user(), f"{box.url}/hook")
    # A mark that is still turning is wider than its place.
    async with (
        window(chromium, site.url, reduced_motion="reduce") as view,
        window(chromium, site.url) as other,
    ):
        page = view.page
        await page.clock.install()
        await sign_in(view)
        await view.open(here)
        button = page.get_by_role("button", name="Examine receiver")
        await button.click()
        await asked.wait()
        assert await button.is_disabled()
        assert await page.get_by_text("The receiver is being examined").is_visible()
        await sign_in(other)
        await other.open(here)
        await other.page.get_by_role("button", name="Examine receiver").click()
        await other.page.get_by_text("Another examination is running").wait_for()
        other.forgive("429")
        release.set()
        result = page.get_by_test_id("examination")
        await result.wait_for()
        text = await result.inner_text()
        assert "A delivery would fail at this step: Response." in text
        assert "refused the signature" in text
        assert await button.is_enabled()
        async with page.expect_response(lambda response: "seen=" in response.url):
            await view.poll()
        assert await result.is_visible()
        # The inbox verifies nothing.
        box.answer = None
        await view.press("Certify receiver")
        report = page.get_by_test_id("certification")
        await report.wait_for()
        text = await report.inner_text()
        assert "The receiver fails." in text
        assert "Compute the signature and compare it with webhook-signature" in text
        assert page.url.endswith(here)
        await report.locator("summary").click()
        await page.get_by_test_id("attempt").locator("summary").click()
        assert await faults(page) == []


async def test_options_are_tried_in_place_and_choices_are_written(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    await site.user()
    async with window(chromium, site.url) as view:
        page = view.page
        await sign_in(view)
        await view.open("/console/webhooks/new")
        await page.get_by_label("Receiver URL").fill(f"{box.url}/hook")
        for event in ("deal.created", "deal.updated"):
            await page.get_by_label(event).check()
        await page.get_by_text("More options").click()
        await view.fill({
            "Filter": "status = open\nvalue is present", "Retry schedule": "5 s, 5 min, 2 h",
        })  # fmt: skip
        await view.press("Try filter and schedule")
        outlook = page.get_by_test_id("outlook")
        await outlook.wait_for()
        assert page.url.endswith("/console/webhooks/new")
        text = await outlook.inner_text()
        assert "Passes" in text
        assert "deal.updated can never match: value is present." in text
        for details in await outlook.locator("summary").all():
            await details.click()
        assert await faults(page) == []
        # What was typed is still there, and a second try replaces the first.
        await page.get_by_label("Filter").fill("")
        await page.get_by_text("Fields of the record", exact=True).click()
        for choice in ("status = won", "status changed", "status = won"):
            await page.get_by_role("button", name=choice, exact=True).first.click()
        typed = await page.get_by_label("Filter").input_value()
        assert typed == "status = won\nstatus changed\n"
        await view.press("Try filter and schedule")
        await page.get_by_text("This sample does not meet: status = won.").wait_for()
        assert await outlook.count() == 1
        await view.press("Create webhook")
        await page.get_by_test_id("webhook-secret").wait_for()
        assert "Never sent" in await page.get_by_test_id("filter").inner_text()
        assert await page.get_by_text("5 s, 5 min, 2 h").is_visible()


async def test_a_delivered_request_is_copied_and_found_genuine(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    """The command that the page offers to copy passes the check; a changed one does not."""
    owner = await site.user()
    here = await webhook(site, owner, f"{box.url}/fine")
    await site.db.write(make, "r", "contact.created", owner)
    [got] = await box.until(1)
    allowed = ["clipboard-read", "clipboard-write"]
    async with window(chromium, site.url, permissions=allowed) as view:
        page = view.page
        await page.clock.install()
        await sign_in(view)
        await view.open(f"{here}/deliveries")
        await page.locator("#delivery-rows tbody a").first.click()
        await view.poll_until("#delivery .badge.is-delivered")
        await page.get_by_text("As curl").click()
        copied = await copy(view, "Copy the command")
        assert copied.startswith("curl -X POST")
        assert (await copy(view, "Copy body")).encode() == got.body
        for text, says in (
            (copied, "right, made with the current secret"),
            (copied.replace("contact.created", "contact.deleted"), "signed with another secret"),
        ):
            await view.open(f"{here}/guide")
            await page.get_by_role("textbox", name="Request").fill(text)
            await view.press("Check signature")
            assert await page.get_by_test_id("verdict").get_by_text(says).count() == 2


async def copy(view: Window, name: str) -> str:
    """Press a button; return what is in the clipboard then."""
    await view.page.get_by_role("button", name=name).click()
    await view.page.get_by_text("Copied").first.wait_for()
    return str(await view.page.evaluate("navigator.clipboard.readText()"))


async def test_totals_follow_what_is_typed_and_a_sheet_prints_itself_alone(
    chromium: Browser, site: Site
) -> None:
    owner = await RestApi(site).key_of(await site.user())
    await owner.post("/api/products", {"name": "Café em grãos", "price": 89.9, "sku": "CAF"})
    async with window(chromium, site.url) as view:
        page = view.page
        await sign_in(view)
        await view.open("/console/quotes/new")
        await page.locator("#find").fill("cafe")
        await page.keyboard.press("Enter")
        await view.press("Add “Café em grãos”")
        quantity = page.locator("[id='items[0].quantity']")
        await page.locator("#totals .sum", has_text="R$89.90").wait_for()
        await quantity.fill("3")
        await quantity.press("Tab")
        await page.locator("#totals .sum", has_text="R$269.70").wait_for()
        # The focus stays where the reader types.
        focus = await page.evaluate("() => document.activeElement.id")
        assert focus == "items[0].unitPrice"
        assert await page.locator("#line-0").inner_text() == "R$269.70"
        # Enter saves.
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/console/quotes/*done=*")
        [quote] = (await owner.get("/api/quotes")).body["data"]
        assert (quote["total"], quote["items"][0]["quantity"]) == (269.7, 3)

        await view.open(f"/console/quotes/{quote['id']}/print")
        await page.emulate_media(media="print")
        for hidden in (".bar", ".crumbs", ".unprinted"):
            assert not await page.locator(hidden).is_visible()
        assert await page.locator(".sheet").is_visible()
        await page.emulate_media(media="screen")
        await page.evaluate("() => { window.print = () => { window.printed = true; }; }")
        await view.press("Print")
        assert await page.evaluate("() => window.printed")
