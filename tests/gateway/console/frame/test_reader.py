"""Times and amounts are written as Babel writes them, without its cost."""

import random

import pytest
from babel.numbers import format_currency, format_decimal

from gateway import texts


@pytest.mark.parametrize("code", texts.CODES)
def test_amounts_and_numbers_are_those_of_babel(code: str) -> None:
    words, dice = texts.of(code), random.Random(code)
    centavos = [0, 1, 99, 100, 99_999_999_999_999]
    for cents in (*centavos, *(dice.randrange(10**14) for _ in range(2_000))):
        amount = cents / 100
        assert words.money(amount) == format_currency(amount, "BRL", locale=words.locale)
        assert words.number(cents) == format_decimal(cents, "#,##0", words.locale)
    assert words.money(-1.5) == format_currency(-1.5, "BRL", locale=words.locale)
