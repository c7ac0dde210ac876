"""The words of a search: singulars, prefixes and small words."""

from gateway.records.values.words import (
    MOST,
    search_terms,
)

STORE = "0" * 24


def test_a_search_is_bounded_and_only_its_last_word_is_a_prefix() -> None:
    terms = search_terms(STORE, " ".join(f"palavra{n}" for n in range(40)))
    assert len(terms) == MOST
    assert [any(term.prefix for term in group) for group in terms] == [False] * (MOST - 1) + [True]
    assert search_terms(STORE, " -%\x1f ") == []
