"""Charts as people read them, by mouse and by keyboard, while they change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from outbox.clock import Clock, SystemClock
from outbox.queue.state.figures import STEP
from tests.browser.conftest import sign_in, webhook, window
from tests.browser.stage import past
from tests.support.drain import Inbox, make
from tests.support.figures import fill
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page


class Early(SystemClock):
    """A clock at the beginning of a step of the charts, so that no test meets the end of one."""

    def __init__(self) -> None:
        self._ahead = super().wall() % STEP

    def wall(self) -> int:
        return super().wall() - self._ahead


@pytest.fixture
def clock() -> Clock:
    return Early()


async def of_row(page: Page, step: int) -> list[str]:
    cells = page.locator(f"tr[data-step='{step}'] td")
    return [(text or "").strip() for text in await cells.all_text_contents()]


async def tip(page: Page) -> list[str]:
    """Wait for the box beside the pointer; return its figures."""
    await page.locator(".tip:not([hidden]) dd").first.wait_for()
    return [(text or "").strip() for text in await page.locator(".tip dd").all_text_contents()]


async def test_a_chart_tells_its_steps_and_new_deliveries_leave_the_reader_alone(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    """The figures are those of the table's row, on every chart at once; Escape ends it."""
    owner = await site.user()
    here = await webhook(site, owner, f"{box.url}/orders")
    now = site.db.clock.wall()
    await site.db.write(fill, here[-24:], now, past(now, False, 2))
    async with window(chromium, site.url, viewport={"width": 1440, "height": 900}) as view:
        page = view.page
        await page.clock.install()
        await sign_in(view)
        await view.open("/console")
        chart = page.locator("#chart-attempts")
        await chart.scroll_into_view_if_needed()
        area = await chart.bounding_box()
        assert area
        # Step 50 of 96, in its middle.
        await page.mouse.move(area["x"] + area["width"] * 50.5 / 96, area["y"] + 50)
        assert await tip(page) == await of_row(page, 50)
        assert await page.locator(".cursor").count() == 3
        await page.mouse.move(5, 5)
        await page.locator(".tip").wait_for(state="hidden")
        await chart.focus()
        for key, step in (("ArrowLeft", 95), ("ArrowLeft", 94), ("Home", 0)):
            await page.keyboard.press(key)
            assert await tip(page) == await of_row(page, step)
        await page.keyboard.press("Escape")
        await page.locator(".tip").wait_for(state="hidden")

        # A poll brings the figures of an event; the open table and the read step remain.
        await view.open(f"{here}?range=3h")
        before = await of_row(page, 35)
        await page.locator("#chart-table summary").click()
        await chart.focus()
        await page.keyboard.press("ArrowLeft")
        await site.db.write(make, "new", "contact.created", owner)
        await box.until(1)
        await view.poll_until("#webhook-health .badge.is-delivered")
        assert await page.locator("#chart-table").get_attribute("open") is not None
        assert await page.evaluate("document.activeElement.id") == "chart-attempts"
        after = await of_row(page, 35)
        assert int(after[0]) == int(before[0] if before else 0) + 1
        assert await tip(page) == after
        assert "range=3h" in page.url
