"""Text as search compares it."""

from gateway.records.values.folding import BYTES, fold


def test_case_and_accents_are_ignored() -> None:
    assert fold("Ação") == fold("ACAO") == "acao"


def test_long_text_is_cut_before_normalization() -> None:
    # In a run of marks each is moved past the others: a long one would take minutes.
    assert fold("a" + "\u0301" * BYTES + "b") == "a"
    assert fold("é" * BYTES * 2) == "e" * BYTES
    assert fold("x" * BYTES * 2) == "x" * BYTES
