"""The words of a search: singulars, prefixes and small words."""

import pytest

from gateway.records.values.words import (
    MOST,
    index_terms,
    search_terms,
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
    ("title", "search"),
    [
        ("Prato raso", "prata"), ("Camiseta", "camisola"), ("Bolo", "bola"), ("Caneca", "neca"),
        ("Copo 200 ml", "20 ml"), ("Caneca de café", "caneca chá"),
    ],
)  # fmt: skip
def test_other_words_do_not(title: str, search: str) -> None:
    assert not matches(title, search)


def test_a_search_is_bounded_and_only_its_last_word_is_a_prefix() -> None:
    terms = search_terms(STORE, " ".join(f"palavra{n}" for n in range(40)))
    assert len(terms) == MOST
    assert [any(term.prefix for term in group) for group in terms] == [False] * (MOST - 1) + [True]
    assert search_terms(STORE, " -%\x1f ") == []
