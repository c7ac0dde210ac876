"""A list is imported by keyboard alone, in both languages, on a phone and a desktop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from gateway.domain.imports.importing import Importing
from tests.browser.axe import axe
from tests.browser.conftest import sign_in, window
from tests.browser.test_console import TOO_WIDE
from tests.browser.test_narrow import MISPLACED
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.browser

SIZES = ((375, "light"), (1280, "dark"))
FILE = "Nome;E-mail;Observações\r\nAna;ana@x.com;" + "x" * 300 + "\r\nBia;bia;\r\n"


async def looked(page: Page) -> None:
    """Fail when the page as it is shown bars somebody, or does not fit."""
    await axe(page)
    assert not await page.evaluate(TOO_WIDE)
    assert await page.evaluate(MISPLACED) == []


@pytest.mark.parametrize("language", ["en-US", "pt-BR"])
@pytest.mark.parametrize(("width", "scheme"), SIZES)
async def test_a_list_is_imported_by_keyboard_alone(
    site: Site,
    chromium: Browser,
    language: str,
    width: int,
    scheme: Literal["light", "dark"],
) -> None:
    english = language == "en-US"
    await site.user("maria@example.com")
    size = {"width": width, "height": 812}
    async with window(chromium, site, viewport=size, color_scheme=scheme) as view:
        page = view.page
        await sign_in(view)
        await page.set_extra_http_headers({"Accept-Language": language})
        await view.open("/console/contacts")
        await page.get_by_role("button", name="Import" if english else "Importar").first.focus()
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/console/import/contacts")
        await looked(page)
        await page.locator("#file").set_input_files(
            files={"name": "leads.csv", "mimeType": "text/csv", "buffer": FILE.encode("cp1252")}
        )
        await page.get_by_role("button", name="Upload" if english else "Enviar").focus()
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/console/imports/*")
        assert await page.locator("#column-0").input_value() == "name"
        assert await page.locator("#column-2").input_value() == "notes"
        await looked(page)
        await page.get_by_role("button", name="Check" if english else "Conferir").focus()
        await page.keyboard.press("Enter")
        await page.get_by_test_id("import-state").wait_for()
        await Importing(site.db).run_once()
        await page.get_by_test_id("import-checked").wait_for()
        await looked(page)
        await page.get_by_role("button", name="Import 1" if english else "Importar 1").focus()
        await page.keyboard.press("Enter")
        await page.locator("#column-0").wait_for(state="detached")
        await Importing(site.db).run_once()
        done = "Done" if english else "Concluíd"
        await page.get_by_test_id("import-state").get_by_text(done).wait_for()
        assert await page.get_by_test_id("import-created").inner_text() == "1"
        await looked(page)
        await view.open("/console/import/contacts")
        await looked(page)
