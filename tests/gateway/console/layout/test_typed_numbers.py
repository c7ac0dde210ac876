"""Numbers that are typed: in the form of the reader's language, and back as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.console.layout import typed_numbers
from gateway.records.values import numbers
from gateway.texts import CODES, of

_FORMATS = (numbers.money(), numbers.quantity(), numbers.percentage())


@pytest.mark.parametrize(
    ("text", "portuguese", "english"),
    [
        ("1.500", 1500, 1.5), ("1,500", 1.5, 1500), ("1500", 1500, 1500), ("0.125", 0.125, 0.125),
        ("R$ 1.500,00", 1500, 1500), ("R$\u00a010.000", 10_000, 10), ("1,500.00", 1500, 1500),
        ("89,90", 89.9, 89.9), ("89.9", 89.9, 89.9), ("1.234.567", 1_234_567, 1_234_567),
        ("-1.500", -1500, -1.5), ("cheap", "cheap", "cheap"), ("1.5.0", "1.5.0", "1.5.0"),
        ("9" * 70, "9" * 70, "9" * 70), ("NaN", "NaN", "NaN"), ("", "", ""),
    ],
)  # fmt: skip
def test_a_typed_number_is_that_of_the_language(
    text: str, portuguese: float | str, english: float | str
) -> None:
    for code, expected in (("pt-BR", portuguese), ("en", english)):
        read = typed_numbers.number(text, of(code))
        assert (read if isinstance(expected, str) else float(read)) == expected, code


@given(st.integers(1, numbers.MOST_CENTAVOS), st.sampled_from(CODES))
def test_what_is_shown_for_editing_reads_back_equal(stored: int, code: str) -> None:
    texts = of(code)
    for form, most, places in zip(
        _FORMATS, (numbers.MOST_CENTAVOS, numbers.MOST_THOUSANDTHS, numbers.WHOLE),
        (2, None, None), strict=True,
    ):  # fmt: skip
        value = (stored - 1) % most + 1
        assert form.show is not None
        text = typed_numbers.written(form.show(value), texts, places)
        assert form.accept(typed_numbers.number(text, texts)) == value
        assert (
            form.accept(typed_numbers.number(typed_numbers.plain(text, texts), of("en"))) == value
        )
