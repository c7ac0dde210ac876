"""A phone of 375 px: every page fits it, whatever its people, receivers and settings are called."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from aiohttp import web

from gateway.domain.accounts import users
from gateway.server.app_keys import PASSWORDS
from gateway.server.config import Service
from outbox.database.transaction import Database
from tests.browser.conftest import Window, sign_in, window
from tests.browser.test_console import TOO_WIDE, send_test
from tests.support.console import CONFIG
from tests.support.drain import Inbox
from tests.support.process import free_port
from tests.support.site import PASSWORD, Site, serving

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.browser

PHONE = {"width": 375, "height": 812}
DESKTOP = {"width": 1280, "height": 812}
EMAIL = "m" * 60 + "@" + ".".join(["example" * 8] * 3) + ".com"

# What leaves the page or its own box, is cut off without saying so, or lies on another control.
MISPLACED = """() => {
  const bad = [];
  const width = document.documentElement.clientWidth;
  const of = (e) => e.outerHTML.slice(0, 100).replaceAll("\\n", " ");
  // A head that tables of a phone have for screen readers alone; the skip link waits outside.
  const seen = (e) => e.checkVisibility() && !e.closest(".skip") &&
    !(e.closest("thead") && getComputedStyle(e.closest("thead")).position === "absolute");
  // These say that there is more: an ellipsis, or a caret that walks on.
  const more = (e) => e.closest(".clamp, .crumbs, .brand, .who, input, textarea, pre");
  for (const e of document.body.querySelectorAll("*")) {
    const box = e.getBoundingClientRect();
    if (!box.width || !box.height || !seen(e) || more(e)) continue;
    if (box.right > width + 0.5 || box.left < -0.5) bad.push(`outside: ${of(e)}`);
    const inline = getComputedStyle(e).display === "inline";
    if (!inline && e.scrollWidth > e.clientWidth + 1) bad.push(`too long: ${of(e)}`);
  }
  const acts = [...document.querySelectorAll("a, button, input, select, summary")]
    .filter((e) => seen(e) && e.type !== "hidden");
  for (const [n, one] of acts.entries()) for (const two of acts.slice(n + 1)) {
    const [a, b] = [one.getBoundingClientRect(), two.getBoundingClientRect()];
    const over = (p, q, from, to) => Math.min(p[to], q[to]) - Math.max(p[from], q[from]) > 1;
    if (over(a, b, "left", "right") && over(a, b, "top", "bottom") && !one.contains(two))
      bad.push(`on each other: ${of(one)} ${of(two)}`);
  }
  return bad;
}"""

# WCAG 2.2, 2.5.8; a box's label is a part of its target.
SMALL = """() => [...document.querySelectorAll("a, button, input, select, textarea, summary")]
  .filter((e) => e.checkVisibility() && e.type !== "hidden" && !e.closest(".skip"))
  .map((e) => [(e.matches("[type=checkbox], [type=radio]") && e.closest("label")) || e])
  .filter(([e]) => e.getBoundingClientRect().width < 24 || e.getBoundingClientRect().height < 24)
  .map(([e]) => e.outerHTML.slice(0, 100))"""


@pytest.fixture
async def site(db: Database) -> AsyncIterator[Site]:
    """A service with the longest name that a configuration may give it."""
    config = msgspec.structs.replace(CONFIG, service=Service(name="Carteiro-" + "W" * 31))
    async with serving(db, config, role="all") as site:
        yield site


async def make(view: Window, url: str, headers: str, wait: str) -> tuple[str, str]:
    """A webhook with long texts and some deliveries: its path, and the path of one of them."""
    page = view.page
    await view.open("/console/webhooks/new")
    await page.get_by_label("Receiver URL").fill(url)
    await page.get_by_role("button", name="Select all").click()
    await page.get_by_label("Description").fill("D" * 200)
    await page.get_by_text("More options").click()
    await page.get_by_label("Custom headers").fill(headers)
    await page.get_by_role("button", name="Create webhook").click()
    await page.get_by_test_id("webhook-secret").wait_for()
    for _ in range(3):
        await send_test(view)
        await page.get_by_text("Test event sent").wait_for()
    await page.locator(f"#webhook-health {wait}").first.wait_for()
    delivery = await page.locator("#webhook-health tbody a").first.get_attribute("href")
    assert delivery
    return "/console/webhooks/" + page.url.rpartition("/")[2].partition("?")[0], delivery


async def test_every_page_fits_a_phone_with_the_longest_values(
    chromium: Browser, site: Site, box: Inbox, tmp_path: Path
) -> None:
    """And a desktop too; screenshots are in `tmp_path`."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path.startswith("/ok"):
            return web.Response(headers={"X-" + "Long" * 40: "v" * 300}, text="x" * 3000)
        return web.Response(status=302, headers={"Location": "y" * 300})

    box.answer = answer
    hashed = await site.app[PASSWORDS].hash(PASSWORD)
    await site.db.write(users.add, email=EMAIL, name="N" * 200, password_hash=hashed)
    found = {}
    async with window(chromium, site, user_agent="Q" * 200, viewport=PHONE) as view:
        page = view.page
        await sign_in(view, EMAIL)
        headers = "\n".join(f"X-{'Header' * 8}-{n}: {'v' * 100}" for n in range(10))
        good, delivered = await make(
            view, f"{box.url}/ok/{'p' * 500}", headers, ".badge.is-delivered"
        )
        bad, redirected = await make(view, f"{box.url}/bad/{'p' * 500}", "", ".answer.bad")
        down, refused = await make(view, f"http://127.0.0.1:{free_port()}/", "", ".answer.bad")
        await view.open(bad)
        await page.get_by_role("button", name="Pause").click()
        await page.get_by_text("Paused: no events are sent").wait_for()
        await view.open("/console/keys")
        await page.get_by_label("Name", exact=True).fill("K" * 100)
        await page.get_by_role("button", name="Create key").click()
        await page.get_by_test_id("api-key").wait_for()
        revoke = await page.get_by_role("link", name="Revoke").first.get_attribute("href")
        assert revoke
        for size in (PHONE, DESKTOP):
            await page.set_viewport_size({"width": size["width"], "height": size["height"]})
            for number, path in enumerate([
                "/console", "/console/webhooks", good, bad, down, f"{good}/edit", f"{bad}/activate",
                f"{good}/delete", f"{good}/deliveries", f"{bad}/deliveries?state=waiting",
                f"{down}/deliveries?state=failed", delivered, f"{delivered}/replay", redirected,
                refused, "/console/keys", revoke, "/console/account", "/console/webhooks/new",
            ]):  # fmt: skip
                await view.open(path)
                name = f"{number:02d}-{size['width']}.png"
                await page.screenshot(path=tmp_path / name, full_page=True)
                found[name, path] = await page.evaluate(MISPLACED)
                found[name, path] += await page.evaluate(SMALL)
                if await page.evaluate(TOO_WIDE) > 0:
                    found[name, path].append("too wide")
    assert {page: wrong for page, wrong in found.items() if wrong} == {}


async def test_a_phones_list_says_parked_once(chromium: Browser, site: Site) -> None:
    """The column's label says it there; on a desktop the figure needs the word."""
    await site.user()
    async with window(chromium, site, viewport=PHONE) as view:
        page = view.page
        await sign_in(view)
        path, _ = await make(view, f"http://127.0.0.1:{free_port()}/", "", ".answer.bad")
        await view.open(path)
        await page.get_by_role("button", name="Pause").click()
        await page.get_by_text("Paused: no events are sent").wait_for()
        await view.open("/console/webhooks")
        row = page.locator("#webhook-rows tbody tr")
        assert (await row.inner_text()).lower().count("parked") == 0
        assert await row.locator("td.num").get_attribute("data-label") == "Parked"


async def test_an_attempts_head_keeps_its_order_on_a_phone(chromium: Browser, site: Site) -> None:
    """First line: which and when; second: its outcome and how long it took."""
    await site.user()
    async with window(chromium, site, viewport=PHONE) as view:
        await sign_in(view)
        down = f"http://127.0.0.1:{free_port()}/"
        _, delivery = await make(view, down, "", ".answer.bad")
        await view.open(delivery)
        head = view.page.locator("details.attempt summary").first
        parts = (".no", ".right", ".answer", ".took")
        boxes = [await head.locator(name).bounding_box() for name in parts]
        (no, right, outcome, took) = [found for found in boxes if found]
        assert abs(no["y"] - right["y"]) < 8
        assert abs(outcome["y"] - took["y"]) < 8
        assert outcome["y"] > no["y"] + 8
        assert outcome["x"] == no["x"]


@pytest.mark.parametrize("width", [320, 375, 768, 1000, 1280])
async def test_the_menu_is_one_row_with_the_longest_names(
    chromium: Browser, site: Site, tmp_path: Path, width: int
) -> None:
    """The names of the service and of the person give way; each group opens without scripts."""
    hashed = await site.app[PASSWORDS].hash(PASSWORD)
    await site.db.write(users.add, email=EMAIL, name="N" * 200, password_hash=hashed)
    size = {"width": width, "height": 700}
    async with window(chromium, site, viewport=size, java_script_enabled=False) as view:
        await sign_in(view, EMAIL)
        places = view.page.locator(".brand, .menu > .home, .menu > details > summary")
        boxes = [await place.bounding_box() for place in await places.all()]
        middles = [box["y"] + box["height"] / 2 for box in boxes if box]
        assert len(middles) >= 5
        assert max(middles) - min(middles) < 3
        for group in await view.page.locator(".menu > details > summary").all():
            await group.press("Enter")
            assert await view.page.locator(".menu details[open]").count() == 1
            assert await view.page.locator(".menu details[open] li").first.is_visible()
        await view.page.screenshot(path=tmp_path / f"{width}.png")
        await group.press("Enter")
    async with window(chromium, site, viewport=size) as view:
        await sign_in(view, EMAIL)
        assert await view.page.evaluate(MISPLACED) == []
