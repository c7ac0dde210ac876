"""The console as people use it: every page, by mouse, by keyboard, on a phone, without scripts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from gateway.domain.accounts import sessions
from tests.browser.conftest import Window, sign_in, window
from tests.support.drain import Inbox
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.browser

WEBHOOK = re.compile("/console/webhooks/([0-9a-f]{24})$")

# For each piece of text: its colour against what is painted behind it (WCAG 2.2, 1.4.3).
CONTRAST = """() => {
  const channel = (byte) => {
    const c = byte / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (text) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const bad = [];
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    const box = element.getBoundingClientRect();
    if (!own || !box.width || !element.checkVisibility() || element.tagName === "OPTION") continue;
    let behind = element, back = rgba("transparent");
    while (behind && back[3] < 255) { back = rgba(getComputedStyle(behind).backgroundColor);
      behind = behind.parentElement; }
    const style = getComputedStyle(element);
    const [a, b] = [light(rgba(style.color)), light(back)].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (large ? 3 : 4.5))
      bad.push(`${ratio.toFixed(2)} ${element.outerHTML.slice(0, 90)}`);
  }
  return bad;
}"""

# Fields that no label, and buttons and links that no text, tells of; ids used twice.
UNNAMED = """() => {
  const bad = [];
  for (const field of document.querySelectorAll("input:not([type=hidden]), select, textarea"))
    if (!field.labels.length && !field.ariaLabel) bad.push(field.outerHTML);
  for (const act of document.querySelectorAll("a, button"))
    if (act.checkVisibility() && !(act.innerText || act.ariaLabel || "").trim())
      bad.push(act.outerHTML);
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  bad.push(...ids.filter((id, n) => ids.indexOf(id) !== n));
  if (document.querySelectorAll("h1").length !== 1) bad.push("h1");
  if (!document.documentElement.lang) bad.push("lang");
  return bad;
}"""
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


async def make_webhook(view: Window, url: str, *events: str) -> str:
    """Through the form; the new webhook's id."""
    await view.open("/console/webhooks/new")
    await view.page.get_by_label("Receiver URL").fill(url)
    for event in events or ("contact.created",):
        await view.page.get_by_label(event).check()
    await view.page.get_by_role("button", name="Create webhook").click()
    await view.page.wait_for_url(WEBHOOK)
    match = WEBHOOK.search(view.page.url)
    assert match
    return match[1]


async def send_test(view: Window, event: str = "contact.created") -> None:
    await view.page.get_by_label("Event", exact=True).select_option(event)
    await view.page.get_by_role("button", name="Send test").click()


async def test_from_the_first_account_to_a_replay(
    chromium: Browser, site: Site, box: Inbox, tmp_path: Path
) -> None:
    """The whole first hour of a new user, with a real write that arrives at a real receiver."""
    await site.db.write(sessions.offer_first_account, "once")
    async with window(chromium, site) as view:
        page = view.page
        await view.open("/console/first-account?token=once")
        await page.get_by_label("Your name").fill("Ana Souza")
        await page.get_by_label("Email").fill("ana@example.com")
        await page.get_by_label("Password").fill("correct horse battery")
        await page.get_by_role("button", name="Create account").click()
        await page.get_by_text("No webhooks yet").wait_for()

        webhook_id = await make_webhook(view, f"{box.url}/crm", "contact.created")
        secret = await page.get_by_test_id("webhook-secret").text_content()
        assert secret
        assert secret.startswith("whsec_")
        await page.reload()
        assert await page.get_by_test_id("webhook-secret").count() == 0

        await send_test(view)
        # It comes by itself: nothing here reloads the page.
        await page.locator("#webhook-health .badge.is-delivered").wait_for()
        [tested] = await box.until(1)
        assert tested.headers["X-Webhook-Test"] == "1"

        await view.open("/console/keys")
        await page.get_by_label("Name", exact=True).fill("ERP sync")
        await page.get_by_role("button", name="Create key").click()
        key = await page.get_by_test_id("api-key").text_content()
        assert key
        async with site.http.post(
            "/api/contacts", json={"name": "João"}, headers={"X-API-Key": key}
        ) as answer:
            assert answer.status == 201
        got = (await box.until(2))[-1]

        await view.open(f"/console/webhooks/{webhook_id}/deliveries")
        await page.locator("#delivery-rows tbody tr").nth(1).wait_for()
        await page.locator("#delivery-rows tbody a").first.click()
        assert await page.get_by_test_id("delivery-body").text_content() == got.body.decode()
        headers = await page.get_by_test_id("request-headers").text_content()
        assert headers
        assert got.headers["X-Webhook-Signature"] in headers
        await page.get_by_role("button", name="Replay").click()
        await page.get_by_text("The receiver accepted it").wait_for()
        await page.get_by_role("button", name="Send again").click()
        await page.get_by_text("replay, requested by Ana Souza").wait_for()
        await page.locator("#delivery .badge.is-delivered").first.wait_for()
        replayed = (await box.until(3))[-1]
        assert replayed.body == got.body

        await view.open(f"/console/webhooks/{webhook_id}")
        await page.get_by_role("button", name="Pause").click()
        await page.get_by_text("Paused: no events are sent").wait_for()
        async with site.http.post(
            "/api/contacts", json={"name": "Rita"}, headers={"X-API-Key": key}
        ) as answer:
            assert answer.status == 201
        await page.locator("#waiting-link").wait_for()
        await page.get_by_role("button", name="Activate").click()
        await page.get_by_label("Send all of them").check()
        await page.get_by_role("button", name="Activate").click()
        await page.get_by_text("Webhook activated.").wait_for()
        await box.until(4)

        await page.get_by_role("button", name="Delete").click()
        await page.get_by_role("button", name="Delete webhook").click()
        await page.get_by_text("Webhook deleted.").wait_for()
        await page.locator(".menu .me > summary").click()
        await page.get_by_role("button", name="Sign out").click()
        await page.get_by_text("You are signed out.").wait_for()


async def furnished(view: Window, site: Site, box: Inbox) -> list[str]:
    """A console with something on every page; the addresses of all pages."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/ok":
            return web.json_response({"received": True})
        return web.Response(status=500, text="<script>alert(1)</script> " + "x" * 300)

    box.answer = answer
    await site.user()
    await sign_in(view)
    good = await make_webhook(view, f"{box.url}/ok", "contact.created", "deal.updated")
    await send_test(view)
    await view.page.locator("#webhook-health .badge.is-delivered").wait_for()
    bad = await make_webhook(view, f"{box.url}/bad?{'long=' + 'y' * 200}", "quote.created")
    await send_test(view)
    row = view.page.locator("#webhook-health tbody a").first
    await view.page.locator("#webhook-health .answer.bad").first.wait_for()
    delivery = await row.get_attribute("href")
    assert delivery
    await view.page.get_by_role("button", name="Pause").click()
    await view.page.get_by_text("Paused: no events are sent").wait_for()
    await view.open(f"/console/webhooks/{good}")
    await view.page.get_by_role("link", name="Rotate").click()
    await view.page.get_by_role("button", name="Create new secret").click()
    await view.page.get_by_test_id("webhook-secret").wait_for()
    await view.open("/console/keys")
    await view.page.get_by_label("Name", exact=True).fill("ERP <b>sync</b>")
    await view.page.get_by_role("button", name="Create key").click()
    revoke = await view.page.get_by_role("link", name="Revoke").get_attribute("href")
    assert revoke
    return [
        "/console/webhooks", "/console/webhooks/new", f"/console/webhooks/{good}",
        f"/console/webhooks/{bad}", f"/console/webhooks/{good}/edit",
        f"/console/webhooks/{bad}/activate", f"/console/webhooks/{good}/delete",
        f"/console/webhooks/{good}/rotate", f"/console/webhooks/{bad}/rotate",
        f"/console/webhooks/{good}/deliveries", f"/console/webhooks/{bad}/deliveries?state=ready",
        f"/console/webhooks/{good}/deliveries?state=dead", delivery,
        f"{delivery}/replay", "/console/keys", revoke, "/console/account",
        "/console/first-account",
    ]  # fmt: skip


async def test_every_page_can_be_read_by_everybody(
    chromium: Browser, site: Site, box: Inbox, tmp_path: Path
) -> None:
    """Contrast, names, headings and width of all pages; a screenshot of each is in `tmp_path`."""
    found = {}
    async with window(chromium, site) as view:
        pages = await furnished(view, site, box)
        cookies = await view.page.context.storage_state()
    looks: list[tuple[Any, int]] = [("light", 375), ("dark", 1280), ("light", 1280), ("dark", 375)]
    for scheme, width in looks:
        size = {"width": width, "height": 800}
        async with window(
            chromium, site, viewport=size, color_scheme=scheme, storage_state=cookies
        ) as view:
            for number, path in enumerate(pages):
                await view.open(path)
                name = f"{number:02d}-{scheme}-{width}.png"
                await view.page.screenshot(path=tmp_path / name, full_page=True)
                found[name, path] = await view.page.evaluate(CONTRAST)
                found[name, path] += await view.page.evaluate(UNNAMED)
                if await view.page.evaluate(TOO_WIDE) > 0:
                    found[name, path].append("too wide")
    assert {page: bad for page, bad in found.items() if bad} == {}


async def test_it_works_without_scripts(chromium: Browser, site: Site, box: Inbox) -> None:
    await site.user()
    async with window(chromium, site, java_script_enabled=False) as view:
        page = view.page
        await view.open("/console/keys")
        await page.locator("#email").fill("maria@example.com")
        await page.locator("#password").fill("correct horse battery")
        await page.locator("button[type=submit]").click()
        assert page.url.endswith("/console/keys")
        await view.open("/console/webhooks/new")
        await page.locator("#url").fill(f"{box.url}/crm")
        await page.locator("input[value='task.completed']").check()
        await page.get_by_role("button", name="Create webhook").click()
        assert await page.locator("[data-testid=webhook-secret]").is_visible()
        assert not await page.locator("[data-copy]:visible").count()
        await page.locator("#event").select_option("task.completed")
        await page.locator("form.inline button").click()
        await box.until(1)
        await page.locator("#all-deliveries").click()
        assert page.url.endswith("/deliveries")
        await page.locator("#delivery-rows tbody a").first.click()
        assert "task.completed" in (
            await page.locator("[data-testid=delivery-body]").text_content() or ""
        )


async def test_a_row_opens_by_click_and_its_text_can_be_selected(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    await site.user()
    async with window(chromium, site) as view:
        page = view.page
        await sign_in(view)
        webhook_id = await make_webhook(view, f"{box.url}/ok")
        await send_test(view)
        await page.locator("#webhook-health .badge.is-delivered").wait_for()
        await view.open("/console/webhooks")
        await page.locator("#webhook-rows tbody .badge").click()
        await page.wait_for_url(f"**/console/webhooks/{webhook_id}")
        await view.open(f"/console/webhooks/{webhook_id}/deliveries")
        record = page.locator("#delivery-rows tbody .mono")
        box_ = await record.bounding_box()
        assert box_
        middle = box_["y"] + box_["height"] / 2
        await page.mouse.move(box_["x"] + 1, middle)
        await page.mouse.down()
        await page.mouse.move(box_["x"] + box_["width"] - 1, middle, steps=5)
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


async def test_it_works_by_keyboard_alone(chromium: Browser, site: Site, box: Inbox) -> None:
    await site.user()
    async with window(chromium, site) as view:
        keys = view.page.keyboard
        await view.open("/console/sign-in")
        # The browser may give a field the focus after it has loaded the page.
        await view.page.wait_for_function("document.activeElement.matches('input')")
        await keys.type("maria@example.com")
        await keys.press("Tab")
        await keys.type("correct horse battery")
        await keys.press("Enter")
        await view.page.wait_for_url("**/console")
        await keys.press("Tab")
        assert await view.page.evaluate("document.activeElement.className") == "skip"
        assert await view.page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
        await keys.press("Enter")
        # The jump is a navigation of its own; a Tab before it would go to the next link above.
        await view.page.wait_for_function("location.hash !== ''")
        await keys.press("Tab")
        await keys.press("Enter")
        await view.page.wait_for_url("**/console/webhooks/new")
        await view.page.wait_for_function("document.activeElement.matches('input')")
        await keys.type(f"{box.url}/crm")
        await keys.press("Tab")
        await keys.press("Enter")  # Select all
        await keys.press("Tab")
        await keys.press("Tab")
        assert await view.page.evaluate("document.activeElement.checked")
        outline = await view.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none"
        await keys.press("Enter")
        await view.page.wait_for_url(WEBHOOK)


async def test_what_refreshes_itself_leaves_the_reader_alone(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    """An attempt that was opened stays open and focus stays, while the page asks for news."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=500)

    box.answer = answer
    await site.user()
    async with window(chromium, site) as view:
        page = view.page
        await sign_in(view)
        await make_webhook(view, f"{box.url}/bad")
        await send_test(view)
        await page.locator("#webhook-health .answer.bad").first.wait_for()
        await page.locator("#webhook-health tbody a").first.click()
        await page.locator("#delivery .badge.is-scheduled").wait_for()
        await page.locator("#attempt-1 > summary").click()
        assert not await page.locator("#attempt-1").evaluate("e => e.open")
        async with page.expect_response(lambda r: "seen=" in r.url) as asked:
            pass
        assert (await asked.value).status in (200, 204)
        if (await asked.value).status == 204:
            assert not await page.locator("#attempt-1").evaluate("e => e.open")


async def test_the_end_of_a_session_leads_to_the_sign_in(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    """A page that refreshes itself must not paste a sign-in form into its table."""
    user_id = await site.user()
    async with window(chromium, site) as view:
        await sign_in(view)
        await make_webhook(view, f"{box.url}/ok")
        await site.db.write(sessions.end_all, user_id)
        await view.page.wait_for_url("**/console/sign-in?next=/console/webhooks/*")
        view.wrong = [wrong for wrong in view.wrong if "401" not in wrong]
