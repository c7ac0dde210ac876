"""The pages of the console in each language: they fit a phone, and speak one language alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gateway import texts
from gateway.domain.catalogue import RESOURCES
from tests.browser.axe import axe
from tests.browser.conftest import Window, window
from tests.browser.test_board import SIDEWAYS, owner, picture
from tests.browser.test_desk import desk
from tests.browser.test_narrow import DESKTOP, PHONE
from tests.support.drain import Inbox
from tests.support.rest import Person
from tests.support.site import PASSWORD, Site

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.browser
__all__ = ["owner"]

EN, PT = texts.of("en"), texts.of("pt-BR")
LISTS = tuple(f"/console/{resource.plural}" for resource in RESOURCES)
PAGES = (
    "/console", "/console/webhooks", "/console/webhooks/new", "/console/deliveries",
    "/console/events", "/console/keys", "/console/audit", "/console/account",
    "/console/account/password", "/console/nowhere", "/console/privacy",
    "/console/import/contacts", *LISTS,
)  # fmt: skip
# What a reader sees or hears, outside what is data or the same in every language.
SAID = """() => {
  const found = [];
  const data = "code, pre, bdi, script, style, [lang]:not(html)";
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode.textContent.trim();
    if (text && !walk.currentNode.parentElement.closest(data)) found.push(text);
  }
  for (const e of document.querySelectorAll("[title], [aria-label], [placeholder], [data-label]"))
    for (const name of ["title", "aria-label", "placeholder", "data-label"])
      if (e.getAttribute(name)) found.push(e.getAttribute(name));
  return found;
}"""


def told_in(own: texts.Texts, other: texts.Texts) -> set[str]:
    """Return the texts of a language that the other one does not have as well."""
    of_other = {form for forms in other.forms.values() for form in forms}
    found = {form for forms in own.forms.values() for form in forms} - of_other
    if own is EN:
        found |= {field.description for one in RESOURCES for field in one.fields}
    return found


FOREIGN = {"en": told_in(PT, EN), "pt-BR": told_in(EN, PT)}


async def leftovers(view: Window, language: str) -> list[str]:
    """Return what a page says in the other language."""
    return [text for text in await view.page.evaluate(SAID) if text in FOREIGN[language]]


async def test_a_leftover_is_found(chromium: Browser, site: Site) -> None:
    async with window(chromium, site) as view:
        await view.open("/console/sign-in")
        assert await leftovers(view, "en") == []
        assert "Password" in await leftovers(view, "pt-BR")


@pytest.mark.parametrize("language", ["en", "pt-BR"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["1280", "375"])
async def test_the_pages_speak_one_language(
    chromium: Browser, site: Site, owner: Person, box: Inbox, size: Any, language: str
) -> None:
    """At sign-in as the browser asks; afterwards as the account says, whatever that asks."""
    own = texts.of(language)
    others = await desk(owner)
    async with window(chromium, site, viewport=size, locale=language) as view:
        await view.open("/console/sign-in")
        await picture(view, f"sign-in-{size['width']}-{language}")
        assert await leftovers(view, language) == []
        await view.page.get_by_label(own("sign_in.email")).fill("maria@example.com")
        await view.page.get_by_label(own("sign_in.password")).fill("a wrong one")
        await view.page.get_by_role("button", name=own("sign_in.submit")).click()
        await view.page.get_by_text(own("sign_in.wrong")).wait_for()
        await view.page.get_by_label(own("sign_in.password")).fill(PASSWORD)
        await view.page.get_by_role("button", name=own("sign_in.submit")).click()
        await view.page.wait_for_url("**/console")
        view.wrong.clear()  # the 401 of the wrong password
        await view.open("/console/account")
        await view.page.get_by_label(own("account.language")).select_option(language)
        await view.page.get_by_role("button", name=own("form.save")).click()
        await view.page.get_by_text(own("done.account_saved")).wait_for()
        # The browser asks for the other language from now on.
        other = "en" if language == "pt-BR" else "pt-BR"
        await view.page.set_extra_http_headers({"Accept-Language": other})
        await view.open("/console/webhooks/new")
        await view.page.get_by_label(own("webhook.url")).fill(box.url)
        await view.page.get_by_role("button", name=own("webhook.events_all")).click()
        await view.page.get_by_role("button", name=own("webhook.create.submit")).click()
        await view.page.get_by_text(own("done.created")).wait_for()
        at = view.page.url.partition("?")[0].removeprefix(site.url)
        await owner.post("/api/contacts", {"name": "Ana", "email": "ana@example.com"})
        await box.until(1)
        hook = [
            at,
            *(
                f"{at}/{page}"
                for page in ("edit", "doctor", "certify", "guide", "rotate", "delete")
            ),
        ]
        hook += [f"{at}/recover?kind={kind}" for kind in ("recover", "backfill")]
        forms = [f"{path}/new" for path in LISTS]
        found = {}
        for path in (*PAGES, *hook, *others.values(), *forms):
            answer = await view.page.goto(site.url + path)
            assert answer is not None
            if answer.status == 404 and path.endswith("/new"):
                continue  # a resource without a form
            assert await view.page.evaluate("document.documentElement.lang") == language, path
            name = path.strip("/").replace("/", "_").partition("?")[0]
            await picture(view, f"{name}-{size['width']}-{language}")
            if wrong := await leftovers(view, language):
                found[path] = wrong
            assert not await view.page.evaluate(SIDEWAYS), path
            if path in ("/console/account", "/console/account/password"):
                await axe(view.page)
        assert not found, "\n".join(f"{path}: {wrong}" for path, wrong in found.items())
        view.wrong.clear()  # the 404s
