"""The formats of values on a page: the steps of an attempt, the word for a delivery."""

import pytest

from gateway import texts


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "R$ 0,00"), (12.9, "R$ 12,90"), (1234.5, "R$ 1.234,50"),
        (1_234_567.89, "R$ 1.234.567,89"), (-12.9, "-R$ 12,90"), (0.1 + 0.2, "R$ 0,30"),
    ],
)  # fmt: skip
def test_amounts_are_written_as_in_brazil(amount: float, text: str) -> None:
    assert texts.of("pt-BR").money(amount).replace("\xa0", " ") == text
