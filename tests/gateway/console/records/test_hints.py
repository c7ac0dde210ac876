"""Hints of inputs: only those that say more than the label."""

import re

import pytest

from gateway import texts
from gateway.console.records.hints import useful
from tests.support.console import Guest


@pytest.mark.parametrize(
    ("code", "label", "hint", "kept"),
    [
        ("en", "Name", "Name of the store.", False),
        ("en", "Name", "Name.", False),
        ("en", "Price", "Price in BRL.", True),
        ("en", "Hostname", "Hostname of the store; unique in the installation.", True),
        ("pt-BR", "Nome", "Nome da loja.", False),
        ("pt-BR", "Descrição", "Descrição do produto.", False),
        ("pt-BR", "Preço", "Preço em BRL.", True),
        ("en", "Name", "", False),
    ],
)
def test_a_hint_that_repeats_its_label_is_left_out(
    code: str, label: str, hint: str, kept: bool
) -> None:
    assert useful(texts.of(code), label, hint) == (hint if kept else "")


async def test_the_form_of_a_store_repeats_no_label(maria: Guest) -> None:
    page = await maria.get("/console/stores/new")
    assert "Name of the store." not in page.html
    assert "unique in the installation" in page.html
    # What describes an input is there.
    described = set(re.findall('aria-describedby="([^"]+-hint)"', page.html))
    assert described - set(re.findall('id="([^"]+)"', page.html)) == set()
