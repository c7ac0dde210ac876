"""Tests the folding of text for search."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.records.values.folding import BYTES, fold

LETTERS = "aZçÃéñÖøß ǅﬁİıΣς\u0300\u0301\u0345\u20dd한½①Ａ"


def test_case_and_accents_are_ignored() -> None:
    assert fold("Ação") == fold("ACAO") == "acao"


def test_long_text_is_cut_before_normalization() -> None:
    # Sorting a run of marks takes quadratic time: a long one takes minutes.
    assert fold("a" + "\u0301" * BYTES + "b") == "a"
    assert fold("é" * BYTES * 2) == "e" * BYTES
    assert fold("x" * BYTES * 2) == "x" * BYTES


@pytest.mark.slow
@given(st.text(max_size=50) | st.text(LETTERS, max_size=20))
def test_every_text_is_folded_by_the_definition(text: str) -> None:
    spread = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    assert fold(text) == "".join(c for c in spread if unicodedata.category(c)[0] != "M")
