"""The board of deals in a browser: by mouse, by keyboard alone, and what a refused move shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import Window, sign_in, window
from tests.browser.faults import bars
from tests.support.rest import Person, RestApi
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser

BOARD = "/console/deals/board"
TITLES = """(stage) => [...document.querySelectorAll(
  `[data-target="${stage}"] .deal .title`)].map((one) => one.textContent)"""


SCROLLED = """() => {
  scrollTo(0, 9999);
  document.getElementById("board").scrollTop = 9999;
  const rect = (one) => document.querySelector(one).getBoundingClientRect().toJSON();
  return [rect(".goal"), rect(".lane > header"), rect(".lane li:last-child")];
}"""


async def stock(site: Site) -> tuple[Person, list[dict[str, Any]]]:
    """An owner with deals; the newest is the first of its column."""
    owner = await RestApi(site).key_of(await site.user())
    made = []
    for title, stage in (("Café", "lead"), ("Máquina", "lead"), ("Contrato", "proposal")):
        reply = await owner.post("/api/deals", {"title": title, "value": 9800, "stage": stage})
        assert reply.status == 201, reply.text
        made.append(reply.body)
    return owner, made


async def said(view: Window, text: str) -> None:
    await view.page.locator("#board-said", has_text=text).wait_for()


async def test_a_card_is_dragged_and_a_lost_race_puts_it_where_it_is(
    chromium: Browser, site: Site
) -> None:
    owner, made = await stock(site)
    async with window(chromium, site.url) as view:
        page = view.page
        await sign_in(view)
        await view.open(BOARD)

        async def drag(deal: dict[str, Any], target: str) -> None:
            await page.locator(f"#deal-{deal['id']}").drag_to(
                page.locator(f"[data-target='{target}']")
            )

        await drag(made[0], "stage:proposal")
        await said(view, "moved to proposal")
        assert await page.evaluate(TITLES, "stage:proposal") == ["Contrato", "Café"]
        assert (await owner.get(f"/api/deals/{made[0]['id']}")).body["stage"] == "proposal"
        lane = page.locator("[data-target='stage:proposal'] .figures")
        assert "2" in await lane.inner_text()
        # Somebody else is faster.
        await owner.put(f"/api/deals/{made[1]['id']}", {"stage": "closing"})
        await drag(made[1], "stage:qualified")
        await said(view, "It is in closing now")
        assert await page.evaluate(TITLES, "stage:qualified") == []
        assert await page.evaluate(TITLES, "stage:closing") == ["Máquina"]
        # The next move has the new version.
        await drag(made[1], "won")
        await said(view, "moved to Won")
        assert await page.locator(f"#deal-{made[1]['id']}").count() == 0
        # A loss asks for its reason.
        await drag(made[0], "lost")
        await page.get_by_label("Reason for the loss").fill("Preço")
        assert await bars(page) == []
        await view.press("Mark as lost")
        await said(view, "moved to Lost")
        lost = (await owner.get(f"/api/deals/{made[0]['id']}")).body
        assert (lost["status"], lost["lostReason"]) == ("lost", "Preço")
        # A strict pipeline refuses, and the card goes back.
        strict = {"stages": ["lead", "proposal"], "strict": True}
        await owner.put("/api/settings/pipeline", strict)
        await drag(made[2], "stage:closing")
        await said(view, "Your pipeline allows only these stages: lead, proposal.")
        assert await page.evaluate(TITLES, "stage:proposal") == ["Contrato"]
        view.forgive(" 409 | 400 ")


async def test_a_deal_moves_by_keyboard_alone(chromium: Browser, site: Site) -> None:
    owner, made = await stock(site)
    async with window(chromium, site.url) as view:
        page, keys = view.page, view.page.keyboard
        await sign_in(view)
        await view.open(BOARD)
        await page.locator(f"#deal-{made[1]['id']} .title").focus()
        await keys.press("ArrowDown")
        top = "() => document.getElementById('board').getBoundingClientRect().top"
        before = await page.evaluate(top)
        await keys.press("ArrowRight")
        await said(view, "Café: to qualified, 2 of 7")
        # What is said moves no column away from under a card.
        assert await page.evaluate(top) == before
        await keys.press("Escape")
        await said(view, "stays where it is")
        await keys.press("ArrowRight")
        await keys.press("ArrowRight")
        await keys.press("Enter")
        await said(view, "moved to proposal")
        assert (await owner.get(f"/api/deals/{made[0]['id']}")).body["stage"] == "proposal"
        # The focus went with the card, so the next key goes on.
        focus = "() => document.activeElement.closest('.deal')?.id"
        assert await page.evaluate(focus) == f"deal-{made[0]['id']}"
        for _ in range(3):
            await keys.press("ArrowRight")
        await said(view, "to Won, 6 of 7")
        await keys.press("Enter")
        await said(view, "moved to Won")
        assert (await owner.get(f"/api/deals/{made[0]['id']}")).body["status"] == "won"


@pytest.mark.parametrize("width", [1280, pytest.param(375, marks=pytest.mark.proof)])
async def test_headings_and_ends_stay_in_sight(chromium: Browser, site: Site, width: int) -> None:
    owner, _ = await stock(site)
    for number in range(12):
        await owner.post("/api/deals", {"title": f"Deal {number}", "value": 1, "stage": "lead"})
    async with window(chromium, site.url, viewport={"width": width, "height": 800}) as view:
        await sign_in(view)
        await view.open(BOARD)
        goal, heading, last = await view.page.evaluate(SCROLLED)
        assert 0 <= goal["top"] < goal["bottom"] <= heading["top"] < heading["bottom"] < last["top"]
        assert last["bottom"] <= 800
