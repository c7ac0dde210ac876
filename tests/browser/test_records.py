"""The pages of records in a real browser: by keyboard, in both languages, light and dark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.domain.catalogue import RESOURCES
from tests.benchmarks.stocked import stock
from tests.browser.axe import axe
from tests.browser.conftest import Window, sign_in, window
from tests.browser.test_console import TOO_WIDE
from tests.browser.test_narrow import MISPLACED
from tests.support.rest import Person, RestApi
from tests.support.site import PASSWORD, Site

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
