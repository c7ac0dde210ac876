"""Formats days in the reader's language and time zone."""

from datetime import UTC, date, datetime, timedelta

from babel.dates import format_date

from gateway.console.layout.reader import EPOCH, Reader

_EPOCH_DAY = EPOCH.date()
_MICROSECOND = timedelta(microseconds=1)


def stored(day: date) -> int:
    """Return a day in the stored form of a bare date."""
    return (datetime(day.year, day.month, day.day, tzinfo=UTC) - EPOCH) // _MICROSECOND


def date_of(at: int, is_day: bool, reader: Reader) -> date:
    """Return the day of a due date: a bare date as it is, an instant in the reader's zone."""
    moment = EPOCH + timedelta(microseconds=at)
    return moment.date() if is_day else moment.astimezone(reader.zone).date()


def words(day: date, reader: Reader, form: str = "medium") -> str:
    """Return a day as text: `1 Dec 2026`, `1 de dez. de 2026`."""
    return str(format_date(day, form, locale=reader.texts.locale))
