"""Every page of the console in a browser: axe finds nothing serious, nothing leaves its place.

`make test` has one visit of each page, `make proof` all of schemes, widths and languages.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from gateway import texts
from gateway.domain.catalogue import RESOURCES
from tests.browser.conftest import Window, gateway, sign_in, window
from tests.browser.faults import expect_bars, faults
from tests.browser.stage import EMAIL, HOUSE, NO_DOCUMENT, PUBLIC, TWO_FACTOR, House, furnish
from tests.support.console import guest
from tests.support.databases import SqliteFiles
from tests.support.drain import inbox
from tests.support.site import PASSWORD

if TYPE_CHECKING:
    from playwright.async_api import Browser

EN, PT = texts.of("en"), texts.of("pt-BR")
PHONE: Any = {"width": 375, "height": 812}
DESKTOP: Any = {"width": 1280, "height": 812}
WHOLE = (
    ("light", DESKTOP, "en"), ("light", PHONE, "pt-BR"), ("dark", DESKTOP, "pt-BR"),
    ("dark", PHONE, "en"),
)  # fmt: skip
"""Each two of scheme, width and language meet."""
LOOKS = [
    pytest.param("light", DESKTOP, "en", False, id="each-type"),
    *(pytest.param(*look, True, id=f"{number}", marks=pytest.mark.proof)
      for number, look in enumerate(WHOLE)),
]  # fmt: skip
# What a reader sees or hears, outside what is data or the same in every language.
SAID = """() => {
  const found = [];
  const data = "code, pre, bdi, textarea, script, style, [lang]:not(html)";
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode.textContent.trim();
    if (text && !walk.currentNode.parentElement.closest(data)) found.push(text);
  }
  for (const e of document.querySelectorAll("[title], [aria-label], [placeholder], [data-label]"))
    for (const name of ["title", "aria-label", "placeholder", "data-label"])
      // The title of what is cut is its own text, which is data.
      if (e.getAttribute(name) && !(name === "title" && e.querySelector("bdi")))
        found.push(e.getAttribute(name));
  return found;
}"""
OPEN = """() => { for (const part of document.querySelectorAll("main details:not(.figures)"))
  part.open = true; }"""


def told_in(own: texts.Texts, other: texts.Texts) -> set[str]:
    """Return the texts of a language that the other one does not have as well."""
    of_other = {form for forms in other.forms.values() for form in forms}
    found = {form for forms in own.forms.values() for form in forms} - of_other
    if own is EN:
        found |= {field.description for one in RESOURCES for field in one.fields}
    return found


FOREIGN = {"en": told_in(PT, EN), "pt-BR": told_in(EN, PT)}


async def wrong_with(view: Window, language: str, within: str = "html") -> list[str]:
    """Return the faults of a page, with what it says in another language."""
    said: list[str] = await view.page.evaluate(SAID)
    foreign = (text for text in said if text in FOREIGN[language])
    return [*await faults(view.page, within), *foreign]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def house(
    tmp_path_factory: pytest.TempPathFactory, sqlite_files: SqliteFiles
) -> AsyncIterator[House]:
    folder: Path = tmp_path_factory.mktemp("house")
    async with (
        inbox() as box, gateway(sqlite_files, folder, HOUSE) as site, guest(site) as owner,
    ):  # fmt: skip
        yield await furnish(site, box, owner)


@pytest.mark.parametrize(("scheme", "size", "language", "whole"), LOOKS)
async def test_every_page_bars_nobody_and_fits(
    chromium: Browser, house: House, tmp_path: Path,
    scheme: str, size: Any, language: str, whole: bool,
) -> None:  # fmt: skip
    """Details are open; a picture of a page that is wrong is in `tmp_path`."""
    found: dict[str, Any] = {}
    look = {"color_scheme": scheme, "viewport": size, "locale": language, "user_agent": "Q" * 200}
    # A mark that is still turning is wider than its place.
    async with window(chromium, house.site.url, **look, reduced_motion="reduce") as view:
        await expect_bars(view.page)

        async def visit(path: str, within: str = "html") -> None:
            answer = await view.page.goto(view.url + path)
            assert answer
            right = 404 if path == NO_DOCUMENT else 200
            await look_at(path, within, [] if answer.status == right else [str(answer.status)])

        async def look_at(path: str, within: str, before: list[str]) -> None:
            await view.page.evaluate(OPEN)
            wrong = await wrong_with(view, language, within) + before
            if wrong:
                found[path] = wrong
                name = f"{len(found)}-{path.strip('/').replace('/', '_').partition('?')[0]}"
                await view.page.screenshot(path=tmp_path / f"{name}.png", full_page=True)

        for path in PUBLIC:
            await visit(path)
        await view.page.goto(view.url + PUBLIC[0])
        await view.page.fill("#email", TWO_FACTOR)
        await view.page.fill("#password", PASSWORD)
        await view.page.press("#password", "Enter")
        await view.page.wait_for_selector("#code")
        await look_at("/console/sign-in/code", "html", [])
        await sign_in(view, EMAIL)
        # Frame and menu are those of every page.
        await visit("/console")
        for path in house.paths(whole=whole):
            await visit(path, "html" if whole else "main")
        if whole:
            view.forgive("at .*" + re.escape(NO_DOCUMENT))
        assert not found, "\n".join(f"{path}: {wrong}" for path, wrong in found.items())


FAULTY = """<!doctype html><html lang="en"><title>Faults</title><body><main><h1>One</h1><h1>Two</h1>
<style>* { margin: 0 } main { padding: 60px } a, button { display: inline-block; padding: 9px }
</style>
<input id="twice"><p id="twice" style="color: #aaa">Pale</p>
<button style="position: relative; left: 30px">Over</button><button>Under</button>
<p style="width: 3000px">Wide</p><p style="width: 50px; white-space: nowrap">Much too long</p>
<a href="/" style="padding: 0; font-size: 9px">x</a><p>Senha</p></main>"""


async def test_each_fault_is_found(chromium: Browser, house: House) -> None:
    async with window(chromium, house.site.url) as view:
        await view.page.set_content(FAULTY)
        found = await wrong_with(view, "en")
    for fault in (
        "color-contrast", "label (critical", "not one h1", "two of an id: twice",
        "scrolls sideways", "outside: <p", "too long: <p", "on each other: <button",
        "too small: <a", "Senha",
    ):  # fmt: skip
        assert sum(one.startswith(fault) for one in found) == 1, (fault, found)


@pytest.mark.proof
async def test_the_menu_is_one_row_with_the_longest_names(chromium: Browser, house: House) -> None:
    """The names of the service and of the person give way; each group opens without scripts."""
    async with window(chromium, house.site.url, java_script_enabled=False) as view:
        page = view.page
        await sign_in(view, EMAIL)
        await view.open("/console/keys")
        for width in (320, 375, 768, 1000, 1280):
            await page.set_viewport_size({"width": width, "height": 700})
            places = page.locator(".brand, .menu > .home, .menu > details > summary")
            boxes = [await place.bounding_box() for place in await places.all()]
            middles = [box["y"] + box["height"] / 2 for box in boxes if box]
            assert len(middles) >= 5
            assert max(middles) - min(middles) < 3
            for group in await page.locator(".menu > details > summary").all():
                await group.press("Enter")
                assert await page.locator(".menu details[open]").count() == 1
                assert await page.locator(".menu details[open] li").first.is_visible()
            await group.press("Enter")
