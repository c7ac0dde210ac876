"""Times and amounts are written as Babel writes them, without its cost."""

import random
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from babel.dates import format_datetime
from babel.numbers import format_currency, format_decimal

from gateway import texts
from gateway.console.layout.reader import EPOCH, EXACT, Reader

ZONES = ("America/Sao_Paulo", "Asia/Kathmandu", "UTC", "Australia/Lord_Howe", "America/New_York")


@pytest.mark.parametrize("code", texts.CODES)
@pytest.mark.parametrize("zone", ZONES)
def test_an_exact_time_is_that_of_babel(zone: str, code: str) -> None:
    reader, dice = Reader(texts.of(code), ZoneInfo(zone)), random.Random(zone)
    for _ in range(200):
        micros = dice.randrange(-(10**12), 2 * 10**12) * 1000
        at = (EPOCH + timedelta(microseconds=micros)).astimezone(reader.zone)
        assert reader.exact(micros) == format_datetime(at, EXACT, locale=reader.texts.locale)


@pytest.mark.parametrize("code", texts.CODES)
def test_amounts_and_numbers_are_those_of_babel(code: str) -> None:
    words, dice = texts.of(code), random.Random(code)
    centavos = [0, 1, 99, 100, 123_450, 99_999_999_999_999]
    for cents in (*centavos, *(dice.randrange(10**14) for _ in range(500))):
        amount = cents / 100
        assert words.money(amount) == format_currency(amount, "BRL", locale=words.locale)
        assert words.number(cents) == format_decimal(cents, "#,##0", words.locale)
    assert words.money(-1.5) == format_currency(-1.5, "BRL", locale=words.locale)
