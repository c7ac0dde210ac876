"""Parts of pages that change by themselves, charts too, and what their reader keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gateway.domain.accounts import sessions
from outbox.clock import Clock, SystemClock
from outbox.database.transaction import Tx
from outbox.queue.state.attempt_counts import STEP
from tests.browser.conftest import sign_in, webhook, window
from tests.browser.faults import bars
from tests.browser.stage import past
from tests.support.drain import Inbox, make, rows
from tests.support.figures import fill
from tests.support.rest import Person, RestApi
from tests.support.site import PASSWORD, Site
from tests.support.waiting import until

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

WIDE: Any = {"width": 1280, "height": 800}
PHONE: Any = {"width": 375, "height": 812}
PLACES = """() => [...document.querySelectorAll("tbody tr")]
  .map((row) => [row.id, Math.round(row.getBoundingClientRect().top)])"""


async def contacts(api: Person, *names: str) -> None:
    for name in names:
        assert (await api.post("/api/contacts", {"name": name})).status == 201


async def delivered(site: Site, count: int) -> None:
    """Wait until so many deliveries are delivered."""
    some = "select 1 from deliveries where state = 'delivered'"

    async def all_of_them() -> bool:
        return len(await site.db.read(rows, some)) >= count

    await until(all_of_them)


async def furnish(site: Site, box: Inbox, count: int) -> Person:
    """An owner whose webhook has got so many events."""
    owner = await site.user()
    await webhook(site, owner, f"{box.url}/crm", "contact.created")
    api = await RestApi(site).key_of(owner)
    await contacts(api, *(f"Ana {n}" for n in range(count)))
    await delivered(site, count)
    return api


async def spoil(tx: Tx, delivery_id: str) -> None:
    await tx.run("update deliveries set state = 'dead' where id = $1", delivery_id)


async def forget(tx: Tx, delivery_id: str) -> None:
    await tx.run("delete from attempts where delivery_id = $1", delivery_id)
    await tx.run("delete from deliveries where id = $1", delivery_id)


async def test_a_list_does_not_move_under_its_reader(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    """New rows wait, a row changes in its place, and one says when it has left the filter."""
    api = await furnish(site, box, 12)
    async with window(chromium, site.url, viewport=WIDE) as view:
        page = view.page
        await page.clock.install()
        await sign_in(view)
        for path in ("/console/deliveries", "/console/events"):
            await view.open(path)
            await page.locator("tbody th a").nth(3).focus()
            await page.mouse.wheel(0, 200)
            await page.wait_for_function("() => scrollY >= 200")
            before, scroll = await page.evaluate(PLACES), await page.evaluate("scrollY")
            focused = await page.evaluate("document.activeElement.id")
            await contacts(api, "Rita", "Rui")
            await delivered(site, len(before) + 2)
            await view.poll()
            await page.locator("#news", has_text="2 new").wait_for()
            assert await page.evaluate("scrollY") == scroll
            assert [row for row, _ in await page.evaluate(PLACES)] == [row for row, _ in before]
            assert await page.evaluate("document.activeElement.id") == focused
            assert await page.locator("#news").get_attribute("aria-live") == "polite"
            # A poll of an unchanged list has no body, also after one that brought news.
            async with page.expect_response(lambda got: "seen=" in got.url) as asked:
                await view.poll()
            assert (await asked.value).status == 204
            await page.locator("#news a").click()
            await page.locator("tbody tr").nth(len(before) + 1).wait_for()
            assert await page.locator("#news").inner_text() == ""
        await view.open("/console/deliveries?state=delivered")
        row = page.locator("tbody tr").nth(1)
        spoiled = str(await row.get_attribute("id")).removeprefix("row-")
        await view.open("/console/deliveries")
        row = page.locator(f"#row-{spoiled}")
        await row.locator("th a").focus()
        await site.db.write(spoil, spoiled)
        await view.poll()
        await row.locator(".badge.is-dead").wait_for()
        assert await page.evaluate("document.activeElement.id") == f"d-{spoiled}"
        assert await page.locator("#news").inner_text() == ""
        await view.open("/console/deliveries?state=delivered")
        gone = str(await page.locator("tbody tr").first.get_attribute("id"))
        await site.db.write(spoil, gone.removeprefix("row-"))
        await view.poll()
        await page.locator("#news", has_text="1 no longer match").wait_for()


async def test_the_buttons_of_a_selection_stay_in_sight(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    await furnish(site, box, 20)
    async with window(chromium, site.url) as view:
        page = view.page
        await sign_in(view)
        for size in (WIDE, PHONE):
            await page.set_viewport_size(size)
            await view.open("/console/deliveries")
            await view.press("Select deliveries")
            await page.locator("tbody input").first.check()
            await page.get_by_text("1 selected", exact=True).wait_for()
            await page.get_by_text("Select all on this page").click()
            await page.get_by_text("20 selected", exact=True).wait_for()
            await page.locator("tbody input").nth(2).uncheck()
            await page.get_by_text("19 selected", exact=True).wait_for()
            replay = await page.get_by_role("button", name="Replay selected").bounding_box()
            assert replay
            assert replay["y"] + replay["height"] <= size["height"]
            assert await page.evaluate("document.documentElement.scrollHeight") > size["height"]
            await page.get_by_text("Clear", exact=True).click()
            await page.get_by_text("0 selected", exact=True).wait_for()


async def test_a_part_that_changes_keeps_what_is_open_and_the_focus(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    """Of a control without an id of its own too, and of one that the new part no longer has."""
    await furnish(site, box, 1)
    async with window(chromium, site.url, viewport=WIDE) as view:
        page = view.page
        await page.clock.install()
        await sign_in(view)
        await view.open("/console/events")
        await page.locator("tbody th a").first.click()
        await page.get_by_text("Exact bytes").click()
        await page.get_by_role("button", name="Copy the record id").focus()
        delivery = str(await page.locator("#event tbody a").first.get_attribute("href"))[-24:]
        await site.db.write(spoil, delivery)
        await view.poll()
        await page.locator("#event .badge.is-dead").wait_for()
        await page.wait_for_function("() => document.activeElement !== document.body")
        assert await page.evaluate("document.activeElement.ariaLabel") == "Copy the record id"
        assert await page.locator("#raw-body").evaluate("part => part.open")
        assert await page.get_by_role("button", name="Copy body").is_visible()
        await page.locator("#event tbody a").first.focus()
        await site.db.write(forget, delivery)
        await view.poll()
        await page.get_by_text("No active webhook").wait_for()
        await page.wait_for_function("() => document.activeElement !== document.body")
        assert await page.evaluate("document.activeElement.id") == "event"


async def test_the_end_of_a_session_leads_to_the_sign_in_and_back_to_what_was_typed(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    """A page that refreshes itself does not paste the form of the sign-in into its table."""
    owner = await site.user()
    url = f"{box.url}/crm?a=1&b=<2>"
    async with window(chromium, site.url) as view:
        page = view.page
        await page.clock.install()
        await sign_in(view)
        await view.open("/console/webhooks/new")
        await page.get_by_label("Receiver URL").fill(url)
        await page.get_by_label("deal.updated").check()
        await page.get_by_label("Description").fill("ERP “Sul”")
        await page.get_by_text("More options").click()
        await view.fill({
            "Custom headers": "Authorization: Bearer s3cret",
            "Filter": "stage = won\ntitle is present",
        })  # fmt: skip
        await site.db.write(sessions.end_all, owner)
        await view.press("Create webhook")
        await page.get_by_text("Your session has ended").wait_for()
        assert await bars(page) == []
        assert "s3cret" not in await page.content()
        await view.fill({"Email": "maria@example.com", "Password": PASSWORD})
        await view.press("Sign in")
        await page.get_by_text("Your form is back").wait_for()
        assert await page.get_by_label("Receiver URL").input_value() == url
        assert await page.get_by_label("deal.updated").is_checked()
        assert not await page.get_by_label("contact.created").is_checked()
        assert await page.get_by_label("Description").input_value() == "ERP “Sul”"
        assert await page.get_by_label("Filter").input_value() == "stage = won\ntitle is present"
        assert await page.get_by_label("Custom headers").input_value() == ""
        await view.press("Create webhook")
        await page.get_by_test_id("webhook-secret").wait_for()
        await site.db.write(sessions.end_all, owner)
        await view.poll()
        await page.wait_for_url("**/console/sign-in?next=/console/webhooks/*")
        view.forgive("401")


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
