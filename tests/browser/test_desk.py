"""Calendar, verbs, lines and sheets in a browser: two languages, light and dark, two sizes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.axe import axe
from tests.browser.conftest import sign_in, window
from tests.browser.test_board import BOARD, SIDEWAYS, owner, picture, stock
from tests.browser.test_narrow import DESKTOP, PHONE
from tests.support.rest import Person
from tests.support.site import Site

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.browser
__all__ = ["owner"]

ITEMS = [
    {"description": "Café torrado em grãos, pacote de 1 kg", "quantity": 12.5, "unitPrice": 89.9},
    {"description": "Entrega", "quantity": 1, "unitPrice": 35, "discount": 5},
]


async def desk(owner: Person) -> dict[str, str]:
    """Make records of each kind; return the pages by their names."""
    await stock(owner)
    month = f"{datetime.now(UTC):%Y-%m}"
    company = (await owner.post("/api/companies", {"name": "Padaria São João & Filhos"})).body
    contact = (await owner.post("/api/contacts", {"name": "João da Silva", "email": "j@x.br"})).body
    for number in range(9):
        task = {"title": f"Ligar para o cliente número {number}", "dueDate": f"{month}-11"}
        await owner.post("/api/tasks", task)
    await owner.post("/api/tasks", {"title": "Reunião", "dueDate": f"{month}-05T14:30:00Z"})
    done = (await owner.post("/api/tasks", {"title": "Feita", "dueDate": f"{month}-05"})).body
    await owner.post(f"/api/tasks/{done['id']}/complete")
    await owner.post("/api/tasks", {"title": "Atrasada", "dueDate": "2020-01-01"})
    content: dict[str, Any] = {
        "items": ITEMS, "discount": 10, "companyId": company["id"], "contactId": contact["id"],
        "validUntil": "2030-12-15", "notes": "Entrega em até 10 dias.",
    }  # fmt: skip
    quote = (await owner.post("/api/quotes", content)).body
    invoice = (await owner.post("/api/invoices", {"items": ITEMS, "dueDate": "2030-12-20"})).body
    store = (await owner.post("/api/stores", {"hostname": "s.example", "name": "Loja"})).body
    images = [
        {"url": "https://s.example/cafe.jpg", "alt": "Um pacote"},
        {"url": "https://s.example/2"},
    ]
    goods: dict[str, Any] = {"name": "Café em grãos", "price": 89.9, "stock": 0, "images": images}
    product = (await owner.post("/api/products", goods)).body
    offer = {"storeId": store["id"], "code": "VERAO10", "discountPercentage": 10, "maxUses": 500}
    coupon = await owner.post("/api/coupons", offer)
    assert coupon.status == 201, coupon.text
    quotes, invoices = f"/console/quotes/{quote['id']}", f"/console/invoices/{invoice['id']}"
    return {
        "calendar": f"/console/tasks/calendar?month={month}", "board": BOARD,
        "overdue": "/console/tasks/due/overdue", "deals": "/console/deals", "quote": quotes,
        "send": f"{quotes}/send", "edit": f"{quotes}/edit", "print": f"{quotes}/print",
        "pay": f"{invoices}/pay", "pipeline": "/console/settings/pipeline",
        "product": f"/console/products/{product['id']}",
        "coupon": f"/console/coupons/{coupon.body['id']}",
    }  # fmt: skip


@pytest.mark.parametrize("language", ["en", "pt-BR"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["1280", "375"])
async def test_the_desk_fits_and_bars_nobody(
    chromium: Browser, site: Site, owner: Person, size: Any, scheme: Any, language: str
) -> None:
    pages = await desk(owner)
    async with window(chromium, site, viewport=size, color_scheme=scheme) as view:
        await sign_in(view)
        await view.page.set_extra_http_headers({"Accept-Language": language})
        for name, path in pages.items():
            await view.open(path)
            if name == "edit":
                await view.page.locator("#totals .sum").wait_for()
            await picture(view, f"{name}-{size['width']}-{scheme}-{language}")
            assert not await view.page.evaluate(SIDEWAYS), path
            await axe(view.page)


async def test_the_totals_follow_what_is_typed(
    chromium: Browser, site: Site, owner: Person
) -> None:
    await owner.post("/api/products", {"name": "Café em grãos", "price": 89.9, "sku": "CAF"})
    async with window(chromium, site, viewport=DESKTOP) as view:
        await sign_in(view)
        await view.open("/console/quotes/new")
        page = view.page
        await page.locator("#find").fill("cafe")
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Add “Café em grãos”").click()
        quantity = page.locator("[id='items[0].quantity']")
        await page.locator("#totals .sum", has_text="R$89.90").wait_for()
        await quantity.fill("3")
        await quantity.press("Tab")
        await page.locator("#totals .sum", has_text="R$269.70").wait_for()
        # The focus stays where the reader types.
        focus = await page.evaluate("() => document.activeElement.id")
        assert focus == "items[0].unitPrice"
        assert await page.locator("#line-0").inner_text() == "R$269.70"
        # Enter saves.
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/console/quotes/*done=*")
        [quote] = (await owner.get("/api/quotes")).body["data"]
        assert (quote["total"], quote["items"][0]["quantity"]) == (269.7, 3)


async def test_a_sheet_prints_itself_alone(chromium: Browser, site: Site, owner: Person) -> None:
    pages = await desk(owner)
    async with window(chromium, site, viewport=DESKTOP) as view:
        await sign_in(view)
        await view.open(pages["print"])
        await view.page.emulate_media(media="print")
        await picture(view, "print-paper")
        for hidden in (".bar", ".crumbs", ".unprinted"):
            assert not await view.page.locator(hidden).is_visible()
        assert await view.page.locator(".sheet").is_visible()
        await view.page.emulate_media(media="screen")
        printed = "() => { window.print = () => { window.printed = true; }; }"
        await view.page.evaluate(printed)
        await view.page.get_by_role("button", name="Print").click()
        assert await view.page.evaluate("() => window.printed")
