"""A language is a folder of catalogues and one line: its code in CODES."""

import re
from pathlib import Path

import pytest

from gateway import texts
from gateway.cli import language
from gateway.domain.storefront.mail import order_texts
from tests.support.console import Guest
from tests.support.site import PASSWORD, Site

HEAD = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n\n'
TEXTS = {
    "sign_in.title": "Anmelden", "nav.contacts": "Kontakte", "mail.hello": "Guten Tag",
    "fault.too_long.most": "Höchstens {most}.",
}  # fmt: skip
FOLDER = Path(texts.__file__).parent
NAMED = re.compile(r"""["']pt[-_]BR["']""")
ALLOWED = {"cli/demo/demo_goods.py", "cli/demo/shop.py", "rest/account.py"}
"""The shop of the demo is written in two languages; an example of the API names one."""


@pytest.fixture
def german(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("en", "pt_BR"):
        (tmp_path / folder).symlink_to(FOLDER / folder)
    own = tmp_path / "de"
    own.mkdir()
    entries = [f'msgid "{key}"\nmsgstr "{text}"\n' for key, text in TEXTS.items()]
    (own / "some.po").write_text(HEAD + "\n".join(entries))
    monkeypatch.setattr(texts, "FOLDER", tmp_path)
    monkeypatch.setattr(texts, "CODES", (*texts.CODES, "de"))


@pytest.mark.usefixtures("german")
async def test_a_third_language_has_pages_numbers_and_mails(console: Site, nobody: Guest) -> None:
    page = await nobody.get("/console/sign-in", Accept_Language="de-AT,en;q=0.5")
    assert ('<html lang="de">' in page.html, "Anmelden" in page.html) == (True, True)
    await console.user()
    await nobody.sign_in("maria@example.com", PASSWORD)
    home = await nobody.get("/console", Accept_Language="de")
    assert "Kontakte" in home.html
    assert "Deutsch" in (await nobody.get("/console/account", Accept_Language="de")).html
    # What the new catalogue lacks is in English.
    assert texts.of("en")("nav.webhooks") in home.html
    own = texts.of("de")
    assert (own.number(1234), own.separator, own("option.pt-BR")) == (
        "1.234", ";", "Portugiesisch (Brasilien)",
    )  # fmt: skip
    assert (order_texts.of("de").hello, order_texts.of("de").money(123_450)) == (
        "Guten Tag", "1.234,50 R$",
    )  # fmt: skip
    assert language.code({"LANG": "de_DE.UTF-8"}) == "de"


def test_no_other_module_names_a_language() -> None:
    product = FOLDER.parent
    named = {
        str(path.relative_to(product)) for path in product.rglob("*.py")
        if NAMED.search(path.read_text()) and path.parent != FOLDER
    }  # fmt: skip
    assert named == ALLOWED
