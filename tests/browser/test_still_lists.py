"""Lists that do not move under their reader, selections, focus, and forms after a session's end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from gateway.domain.accounts import sessions
from outbox.database.transaction import Tx
from tests.browser.axe import axe
from tests.browser.conftest import Window, sign_in, window
from tests.browser.test_console import TOO_WIDE, make_webhook
from tests.browser.test_narrow import MISPLACED, PHONE, SMALL
from tests.support.drain import Inbox
from tests.support.site import PASSWORD, Site

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.browser

WIDE: Any = {"width": 1280, "height": 800}
PLACES = """() => [...document.querySelectorAll("tbody tr")]
  .map((row) => [row.id, Math.round(row.getBoundingClientRect().top)])"""


async def contacts(site: Site, key: dict[str, str], *names: str) -> None:
    for name in names:
        async with site.http.post("/api/contacts", json={"name": name}, headers=key) as made:
            assert made.status == 201


async def furnish(view: Window, site: Site, box: Inbox, owner: str, count: int) -> dict[str, str]:
    """A webhook whose deliveries are delivered; return a key of the API."""
    await make_webhook(view, f"{box.url}/crm", "contact.created")
    key = {"X-API-Key": await site.key(owner)}
    await contacts(site, key, *(f"Ana {n}" for n in range(count)))
    await box.until(count)
    return key


async def delivered(page: Page, count: int) -> None:
    """Load the list until so many deliveries are shown as delivered."""
    badges = page.locator("#delivery-rows .badge.is-delivered")
    while await badges.count() < count:
        await page.reload()


async def axe_faults(page: Page) -> list[str]:
    try:
        await axe(page)
    except AssertionError as found:
        return [str(found)]
    return []


async def spoil(tx: Tx, delivery_id: str) -> None:
    await tx.run("update deliveries set state = 'dead' where id = $1", delivery_id)


async def test_new_rows_wait_and_what_is_there_stays(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    owner = await site.user()
    async with window(chromium, site, viewport=WIDE) as view:
        page = view.page
        await sign_in(view)
        key = await furnish(view, site, box, owner, 12)
        for path, rows in (("/console/deliveries", "delivery"), ("/console/events", "event")):
            await view.open(path)
            if rows == "delivery":
                await delivered(page, 12)
            await page.locator(f"#{rows}-rows tbody tr").nth(11).wait_for()
            link = page.locator("tbody th a").nth(3)
            await link.focus()
            await page.mouse.wheel(0, 200)
            await page.wait_for_function("() => scrollY >= 200")
            before, scroll = await page.evaluate(PLACES), await page.evaluate("scrollY")
            focused = await page.evaluate("document.activeElement.id")
            await contacts(site, key, "Rita", "Rui")
            await page.locator("#news", has_text="2 new").wait_for()
            assert await page.evaluate("scrollY") == scroll
            assert [row for row, _ in await page.evaluate(PLACES)] == [row for row, _ in before]
            assert await page.evaluate("document.activeElement.id") == focused
            assert await page.locator("#news").get_attribute("aria-live") == "polite"
            await page.locator("#news a").click()
            await page.locator("tbody tr").nth(13).wait_for()
            assert await page.locator("#news").inner_text() == ""


async def test_a_row_changes_in_its_place_and_says_when_it_has_left_the_filter(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    owner = await site.user()
    async with window(chromium, site, viewport=WIDE) as view:
        page = view.page
        await sign_in(view)
        await furnish(view, site, box, owner, 3)
        await view.open("/console/deliveries")
        await delivered(page, 3)
        row = page.locator("tbody tr").nth(1)
        spoiled = str(await row.get_attribute("id")).removeprefix("row-")
        await row.locator("th a").focus()
        await site.db.write(spoil, spoiled)
        await row.locator(".badge.is-dead").wait_for()
        assert await page.evaluate("document.activeElement.id") == f"d-{spoiled}"
        assert await page.locator("#news").inner_text() == ""
        await view.open("/console/deliveries?state=delivered")
        gone = str(await page.locator("tbody tr").first.get_attribute("id"))
        await site.db.write(spoil, gone.removeprefix("row-"))
        await page.locator("#news", has_text="1 no longer match").wait_for()
        assert await page.locator("tbody tr").count() == 2


async def test_a_poll_of_an_unchanged_list_has_no_body(
    chromium: Browser, site: Site, box: Inbox
) -> None:
    """Also after one that brought news: the cost of an open page is a query, no page."""
    owner = await site.user()
    async with window(chromium, site, viewport=WIDE) as view:
        page = view.page
        await sign_in(view)
        key = await furnish(view, site, box, owner, 2)
        await view.open("/console/deliveries")
        await delivered(page, 2)
        await contacts(site, key, "Rita")
        await page.locator("#news", has_text="1 new").wait_for()
        while True:
            async with page.expect_response(lambda got: "seen=" in got.url) as asked:
                pass
            if (await asked.value).status == 204:
                break


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["desktop", "phone"])
async def test_the_buttons_of_a_selection_stay_in_sight(
    chromium: Browser, site: Site, box: Inbox, size: Any
) -> None:
    owner = await site.user()
    async with window(chromium, site, viewport=size) as view:
        page = view.page
        await sign_in(view)
        await furnish(view, site, box, owner, 20)
        await view.open("/console/deliveries")
        await delivered(page, 20)
        await page.get_by_role("button", name="Select deliveries").click()
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
        wrong = await page.evaluate(SMALL) + await axe_faults(page)
        assert wrong + [one for one in await page.evaluate(MISPLACED) if "picked" not in one] == []
        assert await page.evaluate(TOO_WIDE) <= 0
        await page.get_by_text("Clear", exact=True).click()
        await page.get_by_text("0 selected", exact=True).wait_for()


async def test_a_selection_works_without_scripts(chromium: Browser, site: Site, box: Inbox) -> None:
    owner = await site.user()
    async with window(chromium, site) as view:
        await sign_in(view)
        await furnish(view, site, box, owner, 3)
        await view.open("/console/deliveries")
        await delivered(view.page, 3)
    async with window(chromium, site, java_script_enabled=False) as view:
        page = view.page
        await sign_in(view)
        await view.open("/console/deliveries")
        await page.get_by_role("button", name="Select deliveries").click()
        await page.get_by_text("Select all on this page").click()
        assert await page.locator("tbody input:checked").count() == 3
        await page.get_by_role("button", name="Replay selected").click()
        await page.get_by_role("button", name="Send again").click()
        assert await page.get_by_text("Replays created").is_visible()


async def test_a_swap_never_takes_the_focus(chromium: Browser, site: Site, box: Inbox) -> None:
    """Of a control without an id of its own, and of one that the new part no longer has."""
    owner = await site.user()
    async with window(chromium, site, viewport=WIDE) as view:
        page = view.page
        await sign_in(view)
        await furnish(view, site, box, owner, 1)
        await view.open("/console/events")
        await page.locator("tbody th a").first.click()
        await page.locator("#event").wait_for()
        await page.get_by_role("button", name="Copy the record id").focus()
        delivery = str(await page.locator("#event tbody a").first.get_attribute("href"))[-24:]
        await site.db.write(spoil, delivery)
        await page.locator("#event .badge.is-dead").wait_for()
        await page.wait_for_function("() => document.activeElement !== document.body")
        assert await page.evaluate("document.activeElement.ariaLabel") == "Copy the record id"
        await page.locator("#event tbody a").first.focus()
        async with page.expect_response(lambda got: "seen=" in got.url and got.status == 200):
            await site.db.write(forget, delivery)
        await page.get_by_text("No active webhook").wait_for()
        await page.wait_for_function("() => document.activeElement !== document.body")
        assert await page.evaluate("document.activeElement.id") == "event"


async def forget(tx: Tx, delivery_id: str) -> None:
    await tx.run("delete from attempts where delivery_id = $1", delivery_id)
    await tx.run("delete from deliveries where id = $1", delivery_id)


@pytest.mark.parametrize("button", ["Create webhook", "Try filter and schedule"])
async def test_what_was_typed_survives_the_end_of_the_session(
    chromium: Browser, site: Site, box: Inbox, button: str
) -> None:
    owner = await site.user()
    async with window(chromium, site) as view:
        page = view.page
        await sign_in(view)
        await view.open("/console/webhooks/new")
        await page.get_by_label("Receiver URL").fill(f"{box.url}/crm?a=1&b=<2>")
        await page.get_by_label("deal.updated").check()
        await page.get_by_label("Description").fill("ERP “Sul”")
        await page.get_by_text("More options").click()
        await page.get_by_label("Custom headers").fill("Authorization: Bearer s3cret")
        await page.get_by_label("Filter").fill("stage = won\ntitle is present")
        await site.db.write(sessions.end_all, owner)
        await page.get_by_role("button", name=button).click()
        await page.get_by_text("Your session has ended").wait_for()
        assert await axe_faults(page) == []
        assert "s3cret" not in await page.content()
        await page.get_by_label("Email").fill("maria@example.com")
        await page.get_by_label("Password").fill(PASSWORD)
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_text("Your form is back").wait_for()
        assert await page.get_by_label("Receiver URL").input_value() == f"{box.url}/crm?a=1&b=<2>"
        assert await page.get_by_label("deal.updated").is_checked()
        assert not await page.get_by_label("contact.created").is_checked()
        assert await page.get_by_label("Description").input_value() == "ERP “Sul”"
        assert await page.get_by_label("Filter").input_value() == "stage = won\ntitle is present"
        assert await page.get_by_label("Custom headers").input_value() == ""
        await page.get_by_role("button", name="Create webhook").click()
        await page.get_by_test_id("webhook-secret").wait_for()
        view.wrong = [wrong for wrong in view.wrong if "401" not in wrong]


async def answer(request: web.Request) -> web.StreamResponse:
    return web.Response(status=500 if request.path == "/down" else 200)


async def test_the_pages_have_no_bar_for_anybody(chromium: Browser, site: Site, box: Inbox) -> None:
    """Legends open, charts open, both languages, schemes and widths: axe finds nothing serious."""
    box.answer = answer
    owner = await site.user()
    async with window(chromium, site) as view:
        page = view.page
        await sign_in(view)
        await furnish(view, site, box, owner, 3)
        down = await make_webhook(view, f"{box.url}/down", "deal.created")
        await page.get_by_role("button", name="Pause").click()
        await page.get_by_text("Paused: no events are sent").wait_for()
        await view.open("/console/deliveries")
        delivery = str(await page.locator("tbody th a").first.get_attribute("href"))
        cookies = await page.context.storage_state()
    paths = [
        "/console", "/console/webhooks", f"/console/webhooks/{down}?range=24h",
        f"/console/webhooks/{down}/activate", "/console/deliveries", "/console/deliveries?q=ana",
        "/console/deliveries?select=1", "/console/events?q=nobody", delivery,
        f"/console/webhooks/{down}/recover", f"/console/webhooks/{down}/pause",
    ]  # fmt: skip
    found = {}
    looks: list[tuple[Any, Any, str]] = [("light", WIDE, "en-US"), ("dark", PHONE, "pt-BR")]
    for scheme, size, language in looks:
        async with window(
            chromium, site, viewport=size, color_scheme=scheme, locale=language,
            storage_state=cookies,
        ) as view:  # fmt: skip
            for path in paths:
                await view.open(path)
                await view.page.evaluate(
                    "document.querySelectorAll('.states').forEach((part) => { part.open = true; })"
                )
                wrong = await axe_faults(view.page) + await view.page.evaluate(SMALL)
                if await view.page.evaluate(TOO_WIDE) > 0:
                    wrong.append("too wide")
                found[path, scheme] = wrong
            view.wrong = [wrong for wrong in view.wrong if "405" not in wrong]
    assert {page: wrong for page, wrong in found.items() if wrong} == {}
