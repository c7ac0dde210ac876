"""The first hour of a new user, by mouse, by keyboard alone, and without scripts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from gateway.domain.accounts import sessions
from tests.browser.conftest import Window, sign_in, webhook, window
from tests.support.drain import Inbox
from tests.support.rest import RestApi
from tests.support.site import PASSWORD, Site

if TYPE_CHECKING:
    from playwright.async_api import Browser

WEBHOOK = re.compile("/console/webhooks/([0-9a-f]{24})$")


async def test_from_the_first_account_to_a_replay(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    """A real write arrives at a real receiver."""
    await site.db.write(sessions.offer_first_account, "once")
    async with window(chromium, site.url) as view:
        page = view.page
        await page.clock.install()
        await view.open("/console/first-account?token=once")
        await view.fill({
            "Your name": "Ana Souza", "Email": "ana@example.com", "Password": PASSWORD,
        })  # fmt: skip
        await view.press("Create account")
        await page.get_by_text("No webhooks yet").wait_for()

        await view.open("/console/webhooks/new")
        await page.get_by_label("Receiver URL").fill(f"{box.url}/crm")
        await page.get_by_label("contact.created").check()
        await view.press("Create webhook")
        await page.wait_for_url(WEBHOOK)
        here = page.url.removeprefix(site.url)
        secret = await page.get_by_test_id("webhook-secret").text_content()
        assert secret
        assert secret.startswith("whsec_")
        await page.reload()
        assert await page.get_by_test_id("webhook-secret").count() == 0

        await page.get_by_label("Event", exact=True).select_option("contact.created")
        await view.press("Send test")
        [tested] = await box.until(1)
        assert tested.headers["X-Webhook-Test"] == "1"
        # It comes by itself: nothing here reloads the page.
        await view.poll_until("#webhook-health .badge.is-delivered")

        await view.open("/console/keys")
        await page.get_by_label("Name", exact=True).fill("ERP sync")
        await view.press("Create key")
        key = await page.get_by_test_id("api-key").text_content()
        assert key
        headers = {"X-API-Key": key}
        made = await site.http.post("/api/contacts", json={"name": "João"}, headers=headers)
        assert made.status == 201
        got = (await box.until(2))[-1]

        await view.open(f"{here}/deliveries")
        await page.locator("#delivery-rows tbody a").first.click()
        assert await page.get_by_test_id("delivery-body").text_content() == got.body.decode()
        sent = await page.get_by_test_id("request-headers").text_content()
        assert sent
        assert got.headers["X-Webhook-Signature"] in sent
        await view.poll_until("#delivery .badge.is-delivered")
        await view.press("Replay")
        await page.get_by_text("The receiver accepted it").wait_for()
        await view.press("Send again")
        await page.get_by_text("replay, requested by Ana Souza").wait_for()
        await view.poll_until("#delivery .badge.is-delivered")
        replayed = (await box.until(3))[-1]
        assert replayed.body == got.body


async def test_a_deal_is_made_by_keyboard_alone(chromium: Browser, site: Site) -> None:
    """From the sign-in and the skip link to a form; a company is found while it is typed."""
    api = await RestApi(site).key_of(await site.user())
    company = "Companhia Brasileira de Torrefação"
    await api.post("/api/companies", {"name": company})
    async with window(chromium, site.url) as view:
        page, keys = view.page, view.page.keyboard
        await view.open("/console/sign-in")
        # The browser may give a field the focus after it has loaded the page.
        await page.wait_for_function("document.activeElement.matches('input')")
        await keys.type("maria@example.com")
        await keys.press("Tab")
        await keys.type(PASSWORD)
        await keys.press("Enter")
        await page.wait_for_url("**/console")
        await keys.press("Tab")
        assert await page.evaluate("document.activeElement.className") == "skip"
        assert await page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
        await keys.press("Enter")
        # The jump is a navigation of its own; a Tab before it would go to the next link above.
        await page.wait_for_function("location.hash !== ''")
        await keys.press("Tab")
        outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none"
        await keys.press("Enter")
        await page.wait_for_url("**/console/import/contacts")
        await tab_to(view, "summary", "CRM")
        await keys.press("Enter")
        await tab_to(view, "a", "Deals")
        await keys.press("Enter")
        await page.wait_for_url("**/console/deals")
        await tab_to(view, "a", "New deal")
        await keys.press("Enter")
        await page.wait_for_url("**/deals/new")
        await tab_to(view, "#title")
        await keys.type("Beans for the fair")
        await tab_to(view, "#value")
        await keys.type("1.234,50")
        await tab_to(view, "#companyId")
        async with page.expect_response("**/companies/suggest**"):
            await keys.type("companhia bras")
        await page.wait_for_selector("#companyId-options option", state="attached")
        offered = await page.locator("#companyId-options option").first.get_attribute("value")
        assert offered == company
        await keys.press("Control+A")
        await keys.type(offered)
        await tab_to(view, "#expectedCloseDate")
        await keys.type("12152026")
        await keys.press("Enter")
        await page.wait_for_url("**/console/deals/*done=deal_created")
        await page.get_by_role("link", name=company).wait_for()
        made = (await api.get("/api/deals?limit=1")).body["data"][0]
        assert (made["value"], made["expectedCloseDate"][:10]) == (1234.5, "2026-12-15")


async def tab_to(view: Window, wanted: str, text: str = "") -> None:
    """Press Tab until an element that matches has the focus."""
    for _ in range(120):
        await view.page.keyboard.press("Tab")
        script = """([wanted, text]) => document.activeElement.matches(wanted) &&
          (!text || document.activeElement.textContent.trim() === text)"""
        if await view.page.evaluate(script, [wanted, text]):
            return
    raise AssertionError(f"Tab never reaches {wanted} {text}")


async def test_a_row_opens_by_click_and_its_text_can_be_selected(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    owner = await site.user()
    here = await webhook(site, owner, f"{box.url}/ok")
    api = await RestApi(site).key_of(owner)
    await api.post("/api/contacts", {"name": "Ana"})
    await box.until(1)
    async with window(chromium, site.url) as view:
        page = view.page
        await sign_in(view)
        await view.open("/console/webhooks")
        await page.locator("#webhook-rows tbody .badge").click()
        await page.wait_for_url(f"**{here}")
        await view.open(f"{here}/deliveries")
        record = await page.locator("#delivery-rows tbody .mono").bounding_box()
        assert record
        middle = record["y"] + record["height"] / 2
        await page.mouse.move(record["x"] + 1, middle)
        await page.mouse.down()
        await page.mouse.move(record["x"] + record["width"] - 1, middle, steps=5)
        await page.mouse.up()
        assert len(await page.evaluate("getSelection().toString()")) > 10
        assert page.url.endswith("/deliveries")
        async with page.context.expect_page() as opened:
            await page.locator("#delivery-rows tbody .num").click(modifiers=["ControlOrMeta"])
        await (await opened.value).wait_for_url("**/console/deliveries/*")
        await (await opened.value).close()
        await page.locator("#delivery-rows tbody .num").click()
        await page.wait_for_url("**/console/deliveries/*")
        # What is no list of pages leads nowhere.
        await view.open("/console/account")
        await page.locator("tbody code").first.click()
        assert page.url.endswith("/console/account")


@pytest.mark.proof
async def test_the_console_works_without_scripts(chromium: Browser, site: Site, box: Inbox) -> None:
    """Buttons lead to pages where scripts would show something in place."""
    api = await RestApi(site).key_of(await site.user())
    deal = {"title": "Máquina", "stage": "lead", "value": 9800}
    assert (await api.post("/api/deals", deal)).status == 201
    async with window(chromium, site.url, java_script_enabled=False) as view:
        page = view.page
        await view.open("/console/webhooks/new")
        await page.locator("#email").fill("maria@example.com")
        await page.locator("#password").fill(PASSWORD)
        await page.locator("main button[type=submit]").click()
        assert page.url.endswith("/console/webhooks/new")
        await page.locator("#url").fill(f"{box.url}/crm")
        await page.locator("input[value='deal.updated']").check()
        await page.get_by_text("More options").click()
        await page.get_by_label("Retry schedule").fill("5 min, 2 h")
        await view.press("Try filter and schedule")
        assert page.url.endswith("/console/webhooks/preview")
        assert await page.get_by_test_id("outlook").is_visible()
        await view.press("Create webhook")
        assert await page.get_by_test_id("webhook-secret").is_visible()
        assert not await page.locator("[data-copy]:visible").count()
        here = page.url.partition("?")[0].removeprefix(site.url)
        for act, seen in (("examine", "examination"), ("certify", "certification")):
            await view.open(here)
            await page.locator(f"form.{act} button, form[action$={act}] button").first.click()
            assert await page.get_by_test_id(seen).is_visible()
        tried = len(box.got) + 1
        await view.open("/console/deals/board")
        await page.get_by_role("link", name="Move “Máquina”").click()
        await page.get_by_label("Move to stage").select_option("closing")
        await view.press("Move")
        await page.get_by_text("Deal moved.").wait_for()
        await box.until(tried)
        await view.open(f"{here}/deliveries")
        await view.press("Select deliveries")
        await page.get_by_text("Select all on this page").click()
        await view.press("Replay selected", "Send again")
        assert await page.get_by_text("Replays created").is_visible()
        await box.until(tried + 1)
