"""Defines the formats of points in time: microseconds UTC, in JSON ISO 8601 text."""

from typing import Any

from gateway.records.values import dates
from gateway.records.values.formats import Format, Wrong, string
from gateway.records.values.schemas import INSTANT

_INSTANT = {"type": "string", "anyOf": [{"format": "date-time"}, {"format": "date"}]}


def instant() -> Format:
    """Return the format of a time in microseconds UTC, a bare date as 00:00Z; in JSON ISO 8601."""

    def check(value: Any) -> int:
        return _micros(value.day if isinstance(value, dates.Day) else value)

    return Format(check, _INSTANT, dates.show, INSTANT, _read_instant)


def moment() -> Format:
    """Return the format of an instant; a bare date stays a dates.Day until the zone is known."""

    def check(value: Any) -> int | dates.Day:
        if isinstance(value, dates.Day):
            return dates.Day(_micros(value.day))
        return _micros(value)

    return Format(check, _INSTANT, dates.show, INSTANT, _read_instant)


def _micros(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Wrong("wrong_type", "Send a time in microseconds.")
    if not dates.FIRST <= value <= dates.LAST:
        raise _invalid_date()
    return value


def _read_instant(value: Any) -> int | dates.Day:
    text = string(value, 40)
    micros = dates.parse(text)
    if micros is None:
        raise _invalid_date()
    if dates.is_day(text):
        return dates.Day(micros)
    # Milliseconds, as in the JSON form, so that a client can send back a value without changing it.
    return micros // 1000 * 1000


def _invalid_date() -> Wrong:
    return Wrong(
        "invalid_date",
        "Send a valid ISO 8601 date or date-time, such as 2026-11-21 or 2026-11-21T14:30:00Z.",
    )
