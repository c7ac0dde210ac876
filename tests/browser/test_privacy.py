"""The pages about persons, in both languages, light and dark, on a phone and a desktop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from tests.browser.axe import axe
from tests.browser.conftest import sign_in, window
from tests.browser.test_console import TOO_WIDE
from tests.browser.test_narrow import MISPLACED
from tests.gateway.console.account.test_privacy import contact
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.browser

SIZES = ((375, "light"), (1280, "dark"))


async def looked(page: Page) -> None:
    """Fail when the page as it is shown bars somebody, or does not fit."""
    await axe(page)
    assert not await page.evaluate(TOO_WIDE)
    assert await page.evaluate(MISPLACED) == []


@pytest.mark.parametrize("language", ["en-US", "pt-BR"])
@pytest.mark.parametrize(("width", "scheme"), SIZES)
async def test_a_person_is_erased_by_keyboard_alone(
    site: Site,
    chromium: Browser,
    language: str,
    width: int,
    scheme: Literal["light", "dark"],
) -> None:
    english = language == "en-US"
    user_id = await site.user("maria@example.com")
    contact_id = await site.db.write(contact, user_id)
    size = {"width": width, "height": 812}
    async with window(chromium, site, viewport=size, color_scheme=scheme) as view:
        page = view.page
        await sign_in(view)
        await page.set_extra_http_headers({"Accept-Language": language})
        await view.open("/console/privacy?q=zoe")
        await looked(page)
        await page.get_by_role("link", name="Zoe <b>").focus()
        await page.keyboard.press("Enter")
        await page.wait_for_url(f"**/console/privacy/{contact_id}")
        await looked(page)
        await page.get_by_role("button", name="Erase…" if english else "Excluir…").focus()
        await page.keyboard.press("Enter")
        await page.wait_for_url(f"**/console/privacy/{contact_id}/erase")
        await looked(page)
        submit = "Erase permanently" if english else "Excluir definitivamente"
        await page.get_by_role("button", name=submit).focus()
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/console/erasures/*")
        title = "Certificate of erasure" if english else "Certificado de exclusão"
        assert await page.get_by_role("heading", name=title).is_visible()
        await looked(page)
