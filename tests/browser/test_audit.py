"""The audit log in a browser: both languages, schemes and widths, and by the keyboard alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.records import audit
from gateway.records.access import Actor
from outbox.database.transaction import Tx
from tests.browser.axe import axe
from tests.browser.conftest import Window, sign_in, window
from tests.browser.test_console import CONTRAST, TOO_WIDE
from tests.browser.test_narrow import MISPLACED, PHONE, SMALL
from tests.support.site import PASSWORD, Site

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.browser

PAGE = "/console/audit"
WIDE: Any = {"width": 1280, "height": 900}


async def fill(tx: Tx, owner_id: str) -> None:
    """Note something of each kind of actor, with long names of everything."""
    actors = [
        Actor(owner_id, "api_key", key_id="k" * 24), Actor(owner_id, "bearer"),
        Actor(owner_id, "storefront", store_id="5" * 24, customer_id="c" * 24),
        Actor(owner_id, "storefront", store_id="5" * 24),
        *(Actor(owner_id, "system", cause=one) for one in ("command", "expiry", "payment")),
    ]  # fmt: skip
    many = ["name", "email", "phone", "shippingRules", "emailVerified", "x" * 90]
    for actor in actors:
        for action in audit.ACTIONS:
            audit.record(tx, actor, action, "contact", "f" * 24, many)


async def enter(view: Window) -> None:
    """Sign in, in whatever language."""
    await view.open("/console/sign-in")
    await view.page.locator("#email").fill("maria@example.com")
    await view.page.locator("#password").fill(PASSWORD)
    await view.page.keyboard.press("Enter")
    await view.page.wait_for_url("**/console")


@pytest.mark.parametrize(("language", "title"), [("en", "Audit log"), ("pt-BR", "Auditoria")])
async def test_the_log_in_every_look(
    chromium: Browser, site: Site, tmp_path: Path, language: str, title: str
) -> None:
    owner_id = await site.user()
    found: dict[str, list[str]] = {}
    for scheme in ("light", "dark"):
        look: Any = {"color_scheme": scheme, "locale": language, "viewport": WIDE}
        async with window(chromium, site, **look) as view:
            page = view.page
            await enter(view)
            await view.open(f"{PAGE}?record=0")
            await page.screenshot(path=tmp_path / f"empty-{language}-{scheme}.png")
            await axe(page)
            await site.db.write(fill, owner_id)
            sizes: tuple[Any, ...] = (WIDE, PHONE)
            for size in sizes:
                await page.set_viewport_size(size)
                await view.open(PAGE)
                assert await page.locator("h1").inner_text() == title
                name = f"audit-{language}-{scheme}-{size['width']}.png"
                await page.screenshot(path=tmp_path / name, full_page=True)
                found[name] = [
                    *await page.evaluate(MISPLACED), *await page.evaluate(SMALL),
                    *await page.evaluate(CONTRAST),
                ]  # fmt: skip
                if await page.evaluate(TOO_WIDE) > 0:
                    found[name].append("too wide")
                await axe(page)
    assert {page: wrong for page, wrong in found.items() if wrong} == {}


async def test_the_log_is_filtered_by_the_keyboard(chromium: Browser, site: Site) -> None:
    owner_id = await site.user()
    await site.db.write(fill, owner_id)
    async with window(chromium, site, viewport=WIDE) as view:
        page = view.page
        await sign_in(view)
        await view.open(PAGE)
        await page.get_by_label("Who", exact=True).focus()
        await page.keyboard.type("Sys")
        await page.keyboard.press("Tab")
        await page.keyboard.type("Eras")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**actor=system&action=erased*")
        assert await page.get_by_test_id("entry").count() == 3
