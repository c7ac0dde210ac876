"""Errors and warnings of the storefront are in the language of the store, their codes the same."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway import graphql, texts
from gateway.domain import storefront
from gateway.graphql.store_language import AREA, say_of
from tests.architecture.tree import ROOT
from tests.support.checkouts import check_out
from tests.support.shop import Shop

SOURCES = (
    *Path(storefront.__path__[0]).rglob("*.py"),
    *Path(graphql.__path__[0]).rglob("fields/*.py"),
    *(ROOT / "gateway" / name for name in (
        "records/values/global_ids.py", "graphql/connections.py", "graphql/execution.py",
        "graphql/request_context.py",
        "graphql/errors.py", "records/values/cep.py", "records/values/emails.py",
        "records/values/postal.py", "records/values/taxpayer.py", "records/errors.py",
        "domain/sales/discounts.py", "domain/sales/unpaid.py",
        "server/http/search_budgets.py",
    )),
)  # fmt: skip
ELSEWHERE = (
    "/stores/", "/payments/", "/privacy/", "categories.py", "reviews.py", "document_limits",
)  # fmt: skip
"""Modules whose other messages go to the owner: REST and the console."""


AROUND = "7 It was removed."
"""Another message stands in it."""
ENGLISH = (
    AROUND, "Send one JSON object as the body; batches are not supported.",
    "Send the body as application/json, in UTF-8.",
)  # fmt: skip
"""What is said before the store is known, or around a text that is translated."""


def messages(path: Path) -> Iterator[str]:
    """Yield the messages in the calls and the variables that make refusals and warnings."""
    for node in ast.walk(ast.parse(path.read_text())):
        values: list[ast.expr] = []
        match node:
            case ast.Call(func=ast.Name(id=name), args=args) if name.lstrip("_") in (
                "Refusal", "refusal", "Fault", "Wrong", "Warn", "no_product", "AttemptLimit",
            ):  # fmt: skip
                values = args
            case ast.Assign(targets=[ast.Name(id="message" | "text" | "stock")], value=value):
                values = [value]
        for value in values:
            text = _text(value)
            if " " in text and text[:1] in string.ascii_uppercase + "7" and text.endswith("."):
                yield text


def _text(value: ast.expr) -> str:
    """Return a text with 7 in place of what is filled in."""
    if isinstance(value, ast.JoinedStr):
        return "".join(_text(one) for one in value.values)
    if isinstance(value, ast.FormattedValue):
        return "7"
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def test_every_message_of_the_storefront_is_in_the_catalogue() -> None:
    say = say_of("pt-BR")
    found = {
        text: path.name
        for path in SOURCES
        if not any(part in path.as_posix() for part in ELSEWHERE)
        for text in messages(path)
    }
    assert len(found) > 60
    missing = {
        text: name for text, name in found.items() if say(text) == text and text not in ENGLISH
    }
    assert missing == {}


def test_every_text_of_the_catalogue_repeats_the_values_of_its_message() -> None:
    english, portuguese = texts.of("en"), texts.of("pt-BR")

    def names(text: str) -> set[str]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name}

    for key in texts.own_keys("en"):
        if key.startswith(AREA):
            assert names(portuguese.forms[key][0]) <= names(english.forms[key][0]), key


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            "The price changed from 123456 to 990 centavos.",
            "O preço mudou de R$\xa01.234,56 para R$\xa09,90.",
        ),
        ("There is no coupon 'NATAL'.", "O cupom “NATAL” não existe."),
        (
            'There is not enough stock: only 2 of "Pão d\'água" left.',
            "Não há estoque suficiente: restam só 2 de “Pão d'água”.",
        ),
        (
            "email: Send an e-mail address such as maria@example.com.",
            "email: Informe um e-mail, como maria@example.com.",
        ),
        (
            "address.zip is required; 2 more errors in details.",
            "O campo address.zip é obrigatório; há mais 2 em details.",
        ),
        ("The coupon NATAL expired. It was removed.", "O cupom NATAL expirou. Ele foi retirado."),
        ("A text that nobody has translated.", "A text that nobody has translated."),
    ],
)
def test_a_message_keeps_its_values(message: str, said: str) -> None:
    assert say_of("pt-BR")(message) == said
    assert say_of("en")(message) == message


async def test_a_store_speaks_its_own_language_whatever_the_browser_asks_for(shop: Shop) -> None:
    browser = shop.browser()
    invalid = 'query ($h: String!) { product(hostname: $h, id: "x") { id } }'
    for language, empty, wrong in (
        ("pt-BR", "O carrinho está vazio; adicione um produto primeiro.", "Envie o id global"),
        ("en", "The cart is empty; add a product first.", "Send the global id of a"),
    ):
        await shop.owner.call("PATCH", f"/api/stores/{shop.store['id']}", {"language": language})
        refused = await check_out(browser)
        assert (refused.code, refused.error["message"]) == ("CART_EMPTY", empty)
        # Refused before a resolver has asked for the store.
        refused = await browser.send(invalid, {"h": browser.hostname}, Accept_Language="fr, en")
        assert (refused.code, wrong in refused.error["message"]) == ("BAD_USER_INPUT", True)
