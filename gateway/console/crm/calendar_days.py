"""Formats days in the reader's language and time zone."""

from datetime import date

from babel.dates import format_date

from gateway.console.layout.reader import Reader
from gateway.records.values import dates
from outbox.durations import DAY

_EPOCH = date(1970, 1, 1)


def stored(day: date) -> int:
    """Return a day in the stored form of a bare date."""
    return (day - _EPOCH).days * DAY


def date_of(at: int, is_day: bool, reader: Reader) -> date:
    """Return the day of a due date: a bare date as it is, an instant in the reader's zone."""
    return dates.local(at, "UTC" if is_day else reader.zone.key).date()


def words(day: date, reader: Reader, form: str = "medium") -> str:
    """Return a day as text: `1 Dec 2026`, `1 de dez. de 2026`."""
    return str(format_date(day, form, locale=reader.texts.locale))
