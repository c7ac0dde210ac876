"""Times and amounts are written as Babel writes them, without its cost."""

import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from babel.dates import format_datetime
from babel.numbers import format_currency, format_decimal

from gateway import texts
from gateway.console.layout import typed_times
from gateway.console.layout.reader import EXACT, Reader
from gateway.records.values import dates
from outbox.durations import DAY

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = ("America/Sao_Paulo", "Asia/Kathmandu", "UTC", "Australia/Lord_Howe", "America/New_York")


@pytest.mark.parametrize("code", texts.CODES)
@pytest.mark.parametrize("zone", ZONES)
def test_an_exact_time_is_that_of_babel(zone: str, code: str) -> None:
    reader, dice = Reader(texts.of(code), ZoneInfo(zone)), random.Random(zone)
    for _ in range(200):
        micros = dice.randrange(-(10**12), 2 * 10**12) * 1000
        at = (EPOCH + timedelta(microseconds=micros)).astimezone(reader.zone)
        assert reader.exact(micros) == format_datetime(at, EXACT, locale=reader.texts.locale)


@pytest.mark.parametrize(
    ("zone", "at", "shown", "exact"),
    [
        ("America/Sao_Paulo", "0001-01-01T00:00:00Z", "0001-01-01T00:00", "00:00:00.000 GMT+00:00"),
        ("America/Sao_Paulo", "0001-01-01T03:06:27Z", "0001-01-01T03:06:27", "03:06:27.000 GMT+00"),
        ("America/Sao_Paulo", "0001-01-01T03:06:28Z", "0001-01-01T00:00", "00:00:00.000 GMT-"),
        ("Europe/Berlin", "0001-01-01T00:00:00Z", "0001-01-01T00:53:28", "00:53:28.000 GMT+00:53"),
        ("Europe/Berlin", "9999-12-31T22:59:59Z", "9999-12-31T23:59:59", "23:59:59.000 GMT+01:00"),
        ("Europe/Berlin", "9999-12-31T23:00:00Z", "9999-12-31T23:00", "23:00:00.000 GMT+00:00"),
        ("Asia/Kathmandu", "9999-12-31T18:14:59Z", "9999-12-31T23:59:59", "23:59:59.000 GMT+05:45"),
        ("Asia/Kathmandu", "9999-12-31T18:15:00Z", "9999-12-31T18:15", "18:15:00.000 GMT+00:00"),
        ("America/Sao_Paulo", "9999-12-31T23:59:59.999Z", "9999-12-31T20:59:59",
         "20:59:59.999 GMT-03:00"),
    ],
)  # fmt: skip
def test_a_time_that_a_zone_leads_out_of_the_calendar_is_in_utc(
    zone: str, at: str, shown: str, exact: str
) -> None:
    reader, micros = Reader(texts.of("en"), ZoneInfo(zone)), dates.parse(at)
    assert micros is not None
    assert f", {exact}" in reader.exact(micros)
    assert typed_times.local(micros, zone) == shown
    assert f"{shown[:10]} {reader.time(micros)}" == shown[:16].replace("T", " ")
    assert dates.show(dates.today(micros, zone))[:10] == shown[:10]
    assert reader.clock(micros, micros) == shown[11:16]
    assert reader.day(micros) in ("Jan 1", "Dec 31")


@pytest.mark.parametrize("zone", ["America/Sao_Paulo", "UTC", "Europe/Berlin"])
def test_a_day_may_end_after_the_calendar(zone: str) -> None:
    """The last one does so in zones west of UTC, and the first one begins before it in the east."""
    last = dates.Day(dates.LAST // DAY * DAY)
    assert dates.show(dates.today(last.ends(zone), zone)) == "9999-12-31T00:00:00.000Z"
    first = dates.Day(dates.FIRST)
    assert dates.show(dates.today(first.begins(zone), zone)) == "0001-01-01T00:00:00.000Z"
    assert dates.show(dates.today(dates.FIRST - DAY, zone)) == "0001-01-01T00:00:00.000Z"


@pytest.mark.parametrize("code", texts.CODES)
def test_amounts_and_numbers_are_those_of_babel(code: str) -> None:
    words, dice = texts.of(code), random.Random(code)
    centavos = [0, 1, 99, 100, 123_450, 99_999_999_999_999]
    for cents in (*centavos, *(dice.randrange(10**14) for _ in range(500))):
        amount = cents / 100
        assert words.money(amount) == format_currency(amount, "BRL", locale=words.locale)
        assert words.number(cents) == format_decimal(cents, "#,##0", words.locale)
    assert words.money(-1.5) == format_currency(-1.5, "BRL", locale=words.locale)
