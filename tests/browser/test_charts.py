"""The overview and the charts as people read them: by mouse, keyboard, phone, without scripts."""

from __future__ import annotations

from math import pi, sin
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outbox.clock import Clock, SystemClock
from outbox.database.transaction import Tx
from outbox.durations import HOUR
from outbox.queue.state.figures import STEP
from tests.browser.conftest import sign_in, window
from tests.browser.test_console import CONTRAST, TOO_WIDE, UNNAMED, make_webhook, send_test
from tests.browser.test_narrow import MISPLACED, PHONE, SMALL
from tests.support.drain import Inbox
from tests.support.figures import fill
from tests.support.process import free_port
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.browser

WIDE: Any = {"width": 1440, "height": 900}


class Early(SystemClock):
    """A clock at the beginning of a step of the charts, so that no test meets the end of one."""

    def __init__(self) -> None:
        self._ahead = super().wall() % STEP

    def wall(self) -> int:
        return super().wall() - self._ahead


@pytest.fixture
def clock() -> Clock:
    return Early()


def busy(now: int) -> Any:
    """A receiver with days and nights, some failures, and an outage some hours ago."""

    def shape(at: int) -> list[tuple[str, int, int]]:
        day = 1 + sin(2 * pi * at / (24 * HOUR))
        noise = at // STEP * 7919 % 13
        count = round(20 * day) + noise
        if now - 7 * HOUR < at < now - 5 * HOUR:
            return [("timeout", 3, 15_000_000), ("http_5xx", 4 + noise % 3, 80_000)]
        failed = 1 if noise == 3 else 0
        return [("success", count, 30_000 + 2_000 * noise), ("throttled", failed, 12_000)]

    return shape


def down(now: int) -> Any:
    """A receiver that failed for good some hours ago."""

    def shape(at: int) -> list[tuple[str, int, int]]:
        if at < now - 20 * HOUR:
            return [("success", 3, 120_000)]
        lost = 1 if at % (6 * HOUR) == 0 else 0
        return [("connect_error", 2, 900), ("exhausted", lost, 0)]

    return shape


async def troubled(tx: Tx, webhook_id: str) -> None:
    await tx.run(
        """
        update webhooks set failures = 24, failing_since = $2, last_attempt_at = $2,
          last_outcome = 'connect_error' where id = $1
        """,
        webhook_id, tx.now - 20 * HOUR,
    )  # fmt: skip


async def furnish(site: Site, box: Inbox, view: Any) -> tuple[str, str]:
    """Three webhooks with the figures of 30 days; the first two are returned."""
    ids = [
        await make_webhook(view, url)
        for url in (f"{box.url}/orders", f"http://127.0.0.1:{free_port()}/crm", f"{box.url}/quiet")
    ]
    now = site.db.clock.wall()
    await site.db.write(fill, ids[0], now, busy(now))
    await site.db.write(fill, ids[1], now, down(now))
    await site.db.write(troubled, ids[1])
    return ids[0], ids[1]


async def test_charts_are_seen_in_both_schemes_and_at_all_widths(
    chromium: Browser, site: Site, box: Inbox, tmp_path: Path
) -> None:
    """Contrast, names, headings and width; a screenshot of each page is in `tmp_path`."""
    await site.user()
    found = {}
    for scheme in ("light", "dark"):
        async with window(chromium, site, color_scheme=scheme, viewport=WIDE) as view:
            page = view.page
            await sign_in(view)
            await page.screenshot(path=tmp_path / f"empty-{scheme}.png")
            if scheme == "light":
                good, bad = await furnish(site, box, view)
            for size in (PHONE, WIDE):
                await page.set_viewport_size({"width": size["width"], "height": size["height"]})
                for name, path in (
                    ("overview", "/console"), ("overview-30d", "/console?range=30d"),
                    ("webhook", f"/console/webhooks/{good}?range=24h"),
                    ("failing", f"/console/webhooks/{bad}?range=7d"),
                ):  # fmt: skip
                    await view.open(path)
                    await page.locator("#chart-attempts .bar").first.wait_for()
                    key = f"{name}-{scheme}-{size['width']}"
                    await page.screenshot(path=tmp_path / f"{key}.png", full_page=True)
                    wrong = await page.evaluate(CONTRAST) + await page.evaluate(UNNAMED)
                    wrong += await page.evaluate(MISPLACED) + await page.evaluate(SMALL)
                    if await page.evaluate(TOO_WIDE) > 0:
                        wrong.append("too wide")
                    found[key] = wrong
    assert {page: wrong for page, wrong in found.items() if wrong} == {}


async def of_row(page: Page, step: str) -> list[str]:
    cells = page.locator(f"tr[data-step='{step}'] td")
    return [(text or "").strip() for text in await cells.all_text_contents()]


async def tip(page: Page) -> list[str]:
    """Wait for the box beside the pointer; return its figures."""
    await page.locator(".tip:not([hidden]) dd").first.wait_for()
    return [(text or "").strip() for text in await page.locator(".tip dd").all_text_contents()]


async def test_a_chart_tells_its_steps_by_mouse_and_by_keyboard(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    """The figures are those of the table's row, on every chart at once; Escape ends it."""
    await site.user()
    async with window(chromium, site, viewport=WIDE) as view:
        page = view.page
        await sign_in(view)
        await furnish(site, box, view)
        await view.open("/console")
        chart = page.locator("#chart-attempts")
        area = await chart.bounding_box()
        assert area
        # Step 50 of 96, in its middle.
        await page.mouse.move(area["x"] + area["width"] * 50.5 / 96, area["y"] + 50)
        assert await tip(page) == await of_row(page, "50")
        assert await page.locator(".cursor").count() == 3
        await page.mouse.move(5, 5)
        await page.locator(".tip").wait_for(state="hidden")
        await chart.focus()
        await page.keyboard.press("ArrowLeft")
        assert await tip(page) == await of_row(page, "95")
        await page.keyboard.press("ArrowLeft")
        assert await tip(page) == await of_row(page, "94")
        await page.keyboard.press("Home")
        assert await tip(page) == await of_row(page, "0")
        await page.keyboard.press("Escape")
        await page.locator(".tip").wait_for(state="hidden")


async def test_new_deliveries_appear_and_what_is_read_stays(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    """A poll brings the figures of a test event; the open table and the read step remain."""
    await site.user()
    async with window(chromium, site, viewport=WIDE) as view:
        page = view.page
        await sign_in(view)
        good, _ = await furnish(site, box, view)
        await view.open(f"/console/webhooks/{good}?range=3h")
        before = (
            await of_row(page, "35") if await page.locator("tr[data-step='35']").count() else []
        )
        await page.locator("#chart-table summary").click()
        await page.locator("#chart-attempts").focus()
        await page.keyboard.press("ArrowLeft")
        async with page.expect_response(
            lambda got: "seen=" in got.url and got.status == 200
        ):  # fmt: skip
            async with window(chromium, site) as other:
                await sign_in(other)
                await other.open(f"/console/webhooks/{good}")
                await send_test(other)
        await page.locator("#webhook-health .badge.is-delivered").first.wait_for()
        assert await page.locator("#chart-table").get_attribute("open") is not None
        assert await page.evaluate("document.activeElement.id") == "chart-attempts"
        now = await of_row(page, "35")
        assert int(now[0]) == int(before[0] if before else 0) + 1
        assert await tip(page) == now
        assert "range=3h" in page.url


async def test_without_scripts_there_are_charts_and_their_table(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    await site.user()
    async with window(chromium, site) as view:
        await sign_in(view)
        await furnish(site, box, view)
    async with window(chromium, site, java_script_enabled=False) as view:
        page = view.page
        await sign_in(view)
        await view.open("/console")
        await page.get_by_role("link", name="7 days", exact=True).click()
        assert page.url.endswith("/console?range=7d")
        assert await page.locator("#chart-attempts .bar").count() == 2
        await page.locator("#chart-table summary").click()
        assert await page.locator("#chart-table tbody tr").count() == 84
        assert await page.get_by_role("img", name="Attempts that succeeded").count() == 1


async def test_after_signing_in_a_failing_webhook_is_two_clicks_away(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    await site.user()
    async with window(chromium, site) as view:
        page = view.page
        await sign_in(view)
        await page.get_by_role("button", name="New webhook").wait_for()
        _, bad = await furnish(site, box, view)
        await page.get_by_label("Main").get_by_role("link", name="Overview").click()
        first = page.locator("#lines tbody tr").first
        await first.get_by_text("Failing").wait_for()
        await first.locator("a").click()
        await page.wait_for_url(f"**/console/webhooks/{bad}?range=24h")
        await page.get_by_text("could not connect").first.wait_for()
