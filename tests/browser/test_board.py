"""The board of deals in a browser: by mouse, by keyboard alone, and what a refused move shows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.axe import axe
from tests.browser.conftest import Window, sign_in, window
from tests.browser.test_narrow import DESKTOP, PHONE
from tests.support.rest import Person, RestApi
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.browser

BOARD = "/console/deals/board"
# The board scrolls within itself, the page never sideways.
SIDEWAYS = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
TITLES = """(stage) => [...document.querySelectorAll(
  `[data-target="${stage}"] .deal .title`)].map((one) => one.textContent)"""


@pytest.fixture
async def owner(site: Site) -> Person:
    return await RestApi(site).key_of(await site.user())


async def stock(owner: Person) -> list[dict[str, Any]]:
    company = (await owner.post("/api/companies", {"name": "Padaria São João & Filhos"})).body
    made = []
    for title, stage, value in (
        ("Fornecimento anual de café", "lead", 12500.5),
        ("Máquina", "lead", 9800),
        ("Contrato de manutenção com um nome que não acaba nunca", "proposal", 1200),
        ("Sem etapa", None, 5),
    ):
        body = {"title": title, "value": value, "companyId": company["id"]}
        body |= {"stage": stage} if stage else {}
        body |= {"expectedCloseDate": "2026-12-15"} if stage == "lead" else {}
        reply = await owner.post("/api/deals", body)
        assert reply.status == 201, reply.text
        made.append(reply.body)
    return made


async def picture(view: Window, name: str) -> None:
    """Keep a picture where DESK_PICTURES says, for a person to look at."""
    if folder := os.environ.get("DESK_PICTURES"):
        await view.page.screenshot(path=f"{folder}/{name}.png", full_page=True)


async def said(view: Window, text: str) -> None:
    await view.page.locator("#board-said", has_text=text).wait_for()


async def test_a_card_is_dragged_and_a_lost_race_puts_it_where_it_is(
    chromium: Browser, site: Site, owner: Person
) -> None:
    made = await stock(owner)
    async with window(chromium, site, viewport=DESKTOP) as view:
        await sign_in(view)
        await view.open(BOARD)
        page = view.page
        first = page.locator(f"#deal-{made[0]['id']}")
        await first.drag_to(page.locator("[data-target='stage:proposal']"))
        await said(view, "moved to proposal")
        assert await page.evaluate(TITLES, "stage:proposal") == [made[2]["title"], made[0]["title"]]
        assert (await owner.get(f"/api/deals/{made[0]['id']}")).body["stage"] == "proposal"
        lane = page.locator("[data-target='stage:proposal'] .figures")
        assert "2" in await lane.inner_text()
        # Somebody else is faster.
        await owner.put(f"/api/deals/{made[1]['id']}", {"stage": "closing"})
        second = page.locator(f"#deal-{made[1]['id']}")
        await second.drag_to(page.locator("[data-target='stage:qualified']"))
        await said(view, "It is in closing now")
        assert await page.evaluate(TITLES, "stage:qualified") == []
        assert await page.evaluate(TITLES, "stage:closing") == ["Máquina"]
        await picture(view, "board-race")
        # The next move has the new version.
        await page.locator(f"#deal-{made[1]['id']}").drag_to(page.locator("[data-target='won']"))
        await said(view, "moved to Won")
        assert await page.locator(f"#deal-{made[1]['id']}").count() == 0
        # A loss asks for its reason.
        await page.locator(f"#deal-{made[0]['id']}").drag_to(page.locator("[data-target='lost']"))
        await page.get_by_label("Reason for the loss").fill("Preço")
        await picture(view, "board-reason")
        await axe(page)
        await page.get_by_role("button", name="Mark as lost").click()
        await said(view, "moved to Lost")
        lost = (await owner.get(f"/api/deals/{made[0]['id']}")).body
        assert (lost["status"], lost["lostReason"]) == ("lost", "Preço")
        # A strict pipeline refuses, and the card goes back.
        strict = {"stages": ["lead", "proposal"], "strict": True}
        await owner.put("/api/settings/pipeline", strict)
        await page.locator(f"#deal-{made[2]['id']}").drag_to(
            page.locator("[data-target='stage:closing']")
        )
        await said(view, "Your pipeline allows only these stages: lead, proposal.")
        assert await page.evaluate(TITLES, "stage:proposal") == [made[2]["title"]]
        assert all(" 409 " in wrong or " 400 " in wrong for wrong in view.wrong), view.wrong
        view.wrong.clear()


async def test_a_deal_moves_by_keyboard_alone(chromium: Browser, site: Site, owner: Person) -> None:
    made = await stock(owner)
    async with window(chromium, site, viewport=DESKTOP) as view:
        await sign_in(view)
        await view.open(BOARD)
        page, keys = view.page, view.page.keyboard
        for _ in range(40):
            await keys.press("Tab")
            if await page.evaluate("() => document.activeElement.matches('.title')"):
                break
        # The newest is first.
        assert await page.evaluate("() => document.activeElement.textContent") == "Máquina"
        await keys.press("ArrowDown")
        await keys.press("ArrowRight")
        await said(view, "Fornecimento anual de café: to qualified, 2 of 8")
        await keys.press("Escape")
        await said(view, "stays where it is")
        await keys.press("ArrowRight")
        await keys.press("ArrowRight")
        await picture(view, "board-keys")
        await keys.press("Enter")
        await said(view, "moved to proposal")
        assert (await owner.get(f"/api/deals/{made[0]['id']}")).body["stage"] == "proposal"
        # The focus went with the card, so the next key goes on.
        focus = "() => document.activeElement.closest('.deal')?.id"
        assert await page.evaluate(focus) == f"deal-{made[0]['id']}"
        for _ in range(4):
            await keys.press("ArrowRight")
        await said(view, "to Won, 7 of 8")
        await keys.press("Enter")
        await said(view, "moved to Won")
        assert (await owner.get(f"/api/deals/{made[0]['id']}")).body["status"] == "won"


async def test_a_deal_moves_without_scripts(chromium: Browser, site: Site, owner: Person) -> None:
    made = await stock(owner)
    async with window(chromium, site, viewport=PHONE, java_script_enabled=False) as view:
        await sign_in(view)
        await view.open(BOARD)
        page = view.page
        await page.get_by_role("link", name="Move “Máquina”").click()
        await page.get_by_label("Move to stage").select_option("closing")
        await picture(view, "board-plain")
        await page.get_by_role("button", name="Move").click()
        await page.get_by_text("Deal moved.").wait_for()
        assert (await owner.get(f"/api/deals/{made[1]['id']}")).body["stage"] == "closing"


@pytest.mark.parametrize("language", ["en", "pt-BR"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["1280", "375"])
async def test_the_board_fits_and_bars_nobody(
    chromium: Browser, site: Site, owner: Person, size: Any, scheme: Any, language: str
) -> None:
    await stock(owner)
    async with window(chromium, site, viewport=size, color_scheme=scheme) as view:
        await sign_in(view)
        await view.page.set_extra_http_headers({"Accept-Language": language})
        for name, path in (("board", BOARD),):
            await view.open(path)
            assert not await view.page.evaluate(SIDEWAYS)
            await picture(view, f"{name}-{size['width']}-{scheme}-{language}")
            await axe(view.page)
