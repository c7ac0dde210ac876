"""The pages of records in a real browser: by keyboard, in both languages, light and dark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.domain.catalogue import RESOURCES
from tests.browser.axe import axe
from tests.browser.conftest import Window, sign_in, window
from tests.browser.test_console import TOO_WIDE
from tests.browser.test_narrow import MISPLACED
from tests.support.rest import Person, RestApi
from tests.support.site import PASSWORD, Site
from tests.support.stocked import stock

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.browser

LONG = "Companhia Brasileira de Torrefação e Comércio de Cafés Especiais do Sul de Minas " * 2
HOSTILE = "<img src=x onerror=alert(1)>\u202e" + "W" * 60
SCHEMES: tuple[Any, ...] = ("light", "dark")
WIDTHS = (1280, 375)


@dataclass(frozen=True)
class Desk:
    """An owner with records of every resource."""

    site: Site
    api: Person
    ids: dict[str, str]
    """The id of a record of each resource by its plural."""


@pytest.fixture
async def desk(site: Site) -> Desk:
    owner_id = await site.user()
    stocked = await stock(site.db, owner_id, 3)
    ids = {one.plural: stocked[one.table] for one in RESOURCES}
    api = await RestApi(site).key_of(owner_id)
    company = (await api.post("/api/companies", {"name": LONG.strip()})).body["id"]
    body = {
        "name": HOSTILE, "email": "hostile@example.com", "companyId": company,
        "tags": ["vip", "T" * 64], "notes": f"{HOSTILE}\n\nsecond line",
    }  # fmt: skip
    contact = (await api.post("/api/contacts", body)).body["id"]
    about = {"relatedTo": contact, "relatedType": "contact"}
    await api.post("/api/activities", {"type": "call", "description": HOSTILE, **about})
    deal = {"title": "Yearly supply", "value": 1234.5, "contactIds": [contact]}
    await api.post("/api/deals", {**deal, "companyId": company})
    await api.post("/api/tasks", {"title": "Call", "dueDate": "2026-12-15"})
    return Desk(site, api, {**ids, "contacts": contact})


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("language", ["en", "pt-BR"])
async def test_every_page_of_records(
    chromium: Browser, desk: Desk, tmp_path: Path, width: int, scheme: Any, language: str
) -> None:
    paths = [f"/console/{one.plural}" for one in RESOURCES]
    paths += [f"/console/{one.plural}/{desk.ids[one.plural]}" for one in RESOURCES]
    paths += [f"/console/{name}/new" for name in ("deals", "invoices", "products", "stores")]
    contact, store = desk.ids["contacts"], desk.ids["stores"]
    paths += [
        f"/console/contacts/{contact}/edit", f"/console/contacts/{contact}/delete",
        f"/console/stores/{store}/delete", f"/console/contacts/{contact}/events",
        "/console/contacts?search=nobody", "/console/deals?status=open&minValue=1&column=value",
    ]  # fmt: skip
    size = {"width": width, "height": 800}
    async with window(
        chromium, desk.site, viewport=size, color_scheme=scheme, locale=language
    ) as view:
        await sign_in_as(view, language)
        wrong: list[Any] = []
        for number, path in enumerate(paths):
            await view.open(path)
            await view.page.wait_for_load_state("networkidle")
            name = f"{language}-{scheme}-{width}-{number:02d}-{path.split('/')[2].split('?')[0]}"
            await view.page.screenshot(path=tmp_path / f"{name}.png", full_page=True)
            if await view.page.evaluate(TOO_WIDE) > 0:
                wrong.append((path, "scrolls sideways"))
            wrong += [(path, one) for one in await view.page.evaluate(MISPLACED)]
            try:
                await axe(view.page)
            except AssertionError as faults:
                wrong.append(str(faults))
        assert wrong == []


async def sign_in_as(view: Window, language: str) -> None:
    if language == "en":
        await sign_in(view)
        return
    await view.open("/console/sign-in")
    await view.page.locator("#email").fill("maria@example.com")
    await view.page.locator("#password").fill(PASSWORD)
    await view.page.locator("main button[type=submit]").click()
    await view.page.wait_for_url("**/console")


@pytest.mark.parametrize("width", WIDTHS)
async def test_a_deal_of_a_contact_by_keyboard_alone(
    chromium: Browser, desk: Desk, tmp_path: Path, width: int
) -> None:
    """From the menu to the list, to the form; a company is found while it is typed."""
    async with window(chromium, desk.site, viewport={"width": width, "height": 800}) as view:
        page = view.page
        await sign_in(view)
        await tab_to(view, "summary", "CRM")
        await page.keyboard.press("Enter")
        await tab_to(view, "a", "Deals")
        await page.screenshot(path=tmp_path / f"menu-{width}.png")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/console/deals")
        await tab_to(view, "a", "New deal")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/deals/new")
        await type_into(view, "title", "Beans for the fair")
        await type_into(view, "value", "1.234,50")
        await tab_to(view, "#companyId")
        async with page.expect_response("**/companies/suggest**"):
            await page.keyboard.type("companhia bras")
        await page.wait_for_selector("#companyId-options option", state="attached")
        offered = await page.locator("#companyId-options option").first.get_attribute("value")
        assert offered == LONG.strip()
        await page.keyboard.press("Control+A")
        await page.keyboard.type(offered)
        await type_into(view, "expectedCloseDate", "12152026")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/console/deals/*done=deal_created")
        await page.get_by_role("link", name=LONG.strip()).wait_for()
        made = (await desk.api.get("/api/deals?limit=1")).body["data"][0]
        assert (made["value"], made["expectedCloseDate"][:10]) == (1234.5, "2026-12-15")
        await tab_to(view, "#description")
        await page.keyboard.type("They want a sample.")
        await tab_to(view, "button", "Add")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**done=note_added")
        assert await page.locator(".activities").inner_text() != ""


async def tab_to(view: Window, wanted: str, text: str = "") -> None:
    """Press Tab until an element that matches has the focus."""
    for _ in range(120):
        await view.page.keyboard.press("Tab")
        script = """([wanted, text]) => document.activeElement.matches(wanted) &&
          (!text || document.activeElement.textContent.trim() === text)"""
        if await view.page.evaluate(script, [wanted, text]):
            return
    raise AssertionError(f"Tab never reaches {wanted} {text}")


async def type_into(view: Window, name: str, text: str) -> None:
    await tab_to(view, f"#{name}")
    await view.page.keyboard.type(text)
