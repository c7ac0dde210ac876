"""The words of a search: singulars, prefixes and small words."""

import pytest

from gateway.records.values.words import (
    MOST,
    Term,
    category_term,
    index_terms,
    search_terms,
    singular,
    words_of,
)

STORE = "0" * 24


def matches(title: str, search: str) -> bool:
    """Return whether a title has all terms of a search, as both engines match them."""
    terms = index_terms(STORE, [title], []).split()
    return all(
        any(
            term.text in terms or (term.prefix and any(t.startswith(term.text) for t in terms))
            for term in group
        )
        for group in search_terms(STORE, search)
    )


@pytest.mark.parametrize(
    "forms",
    [
        "promoção promoções promocoes", "pão pães", "mão mãos", "caneca canecas", "flor flores",
        "torre torres", "luz luzes", "mês meses", "azul azuis", "papel papéis", "lençol lençóis",
        "barril barris", "bombom bombons", "animal animais", "árvore árvores", "gás gases",
        "lápis", "tênis", "ônibus", "stress",
    ],
)  # fmt: skip
def test_a_word_and_its_plural_find_each_other(forms: str) -> None:
    assert len({singular(word) for word in words_of(forms)}) == 1
    for title in forms.split():
        assert all(matches(f"Um {title} novo", search) for search in forms.split())


@pytest.mark.parametrize(
    ("title", "search"),
    [
        ("Prato raso", "prata"), ("Camiseta", "camisola"), ("Bolo", "bola"), ("Caneca", "neca"),
        ("Copo 200 ml", "20 ml"), ("Caneca de café", "caneca chá"),
    ],
)  # fmt: skip
def test_other_words_do_not(title: str, search: str) -> None:
    assert not matches(title, search)


@pytest.mark.parametrize(
    ("title", "search"),
    [
        ("Café em grãos 1 kg", "gra"), ("Café em grãos 1 kg", "GRÃOS cafe"),
        ("Camiseta azul de algodão", "camisetas para algod"), ("Guia de bolso", "de"),
        ("Cadeira", "cadeira com"), ("COF-1000", "cof-10"), ("iPhone_15", "iphone 15"),
        ("Camisetas", "camiseta"), ("Camiseta", "camisetas"),
    ],
)  # fmt: skip
def test_words_in_any_order_with_an_unfinished_one(title: str, search: str) -> None:
    assert matches(title, search)


def test_a_search_is_bounded_and_only_its_last_word_is_a_prefix() -> None:
    terms = search_terms(STORE, " ".join(f"palavra{n}" for n in range(40)))
    assert len(terms) == MOST
    assert [any(term.prefix for term in group) for group in terms] == [False] * (MOST - 1) + [True]
    assert search_terms(STORE, " -%\x1f ") == []


def test_terms_belong_to_a_store_and_hold_nothing_that_an_engine_interprets() -> None:
    text = index_terms(STORE, ["""Zé's "x" & (y)* | :* <-> NEAR\x1f\\ ação""", "A-1"], ["cafes"])
    assert all(term.startswith(STORE) and term.isalnum() for term in text.split())
    assert text.startswith(" ")
    assert text.endswith(" ")
    assert category_term(STORE, "cafes") in text.split()
    assert search_terms("1" * 24, "a")[0][0] == Term("1" * 24 + "sa")
