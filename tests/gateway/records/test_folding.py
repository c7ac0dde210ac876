"""Text as search compares it."""

from gateway.records.values.folding import BYTES, fold


def test_case_and_accents_do_not_count() -> None:
    assert fold("Ação") == fold("ACAO") == "acao"


def test_what_is_too_long_is_cut_before_its_marks_are_put_in_order() -> None:
    # In a run of marks each is moved past the others: a long one would take minutes.
    assert fold("a" + "\u0301" * BYTES + "b") == "a"
    assert fold("é" * BYTES * 2) == "e" * BYTES
    assert fold("x" * BYTES * 2) == "x" * BYTES
