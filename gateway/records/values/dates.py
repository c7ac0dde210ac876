"""Converts points in time between ISO 8601 text and microseconds UTC."""

import re
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, lru_cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from outbox.durations import DAY, SECOND

_FORM = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,12}))?)?(?:([Zz])|([+-])(\d\d):?(\d\d))?)?",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = _EPOCH.toordinal()
_MICROSECOND = timedelta(microseconds=1)
FIRST = -62_135_596_800_000_000
"""0001-01-01T00:00Z."""
LAST = 253_402_300_799_999_999
"""The end of the year 9999."""


DAY_LENGTH = len("2026-12-15")


class Day(NamedTuple):
    """A bare date in place of an instant; the owner's time zone makes it an instant."""

    day: int
    """00:00 UTC of the date, in microseconds: the stored form of a bare date."""

    def begins(self, zone: str) -> int:
        """Return the instant at which the day begins in a time zone."""
        return begin(self.day, zone)

    def ends(self, zone: str) -> int:
        """Return the last millisecond of the day in a time zone."""
        return begin(self.day + DAY, zone) - 1000


def parse(text: str) -> int | None:
    """Return microseconds UTC of RFC 3339 text; without an offset it is UTC, a date is 00:00Z.

    Return None when the text has another form, names an impossible date or a year out of 1 to 9999.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, _, sign, east_hours, east_minutes = (
        match.groups("0")
    )
    hours, minutes, seconds = int(hour), int(minute), int(second)
    ahead = int(east_hours) * 60 + int(east_minutes)
    # RFC 3339 allows second 60; it counts as the first of the next minute.
    if hours > 23 or minutes > 59 or seconds > 60 or east_hours > "23" or east_minutes > "59":
        return None
    try:
        days = date(int(year), int(month), int(day)).toordinal() - _EPOCH_DAY
    except ValueError:
        return None
    minutes += hours * 60 + (ahead if sign == "-" else -ahead)
    micros = days * DAY + (minutes * 60 + seconds) * SECOND
    if seconds < 60:
        micros += int(f"{fraction:0<6.6}")
    return micros if FIRST <= micros <= LAST else None


def is_day(text: str) -> bool:
    """Return whether `text`, which `parse` accepted, is a date without a time."""
    return len(text) == DAY_LENGTH


def is_bare(value: int | Day) -> bool:
    """Return whether a typed value is a bare date."""
    return isinstance(value, Day)


def local(micros: int, zone: str) -> datetime:
    """Return a time as clocks of a time zone show it; at the limits of the calendar, in UTC.

    A time beyond them is the first or the last one. Raises ZoneInfoNotFoundError.
    """
    moment = _EPOCH + timedelta(microseconds=min(max(micros, FIRST), LAST))
    try:
        return moment.astimezone(ZoneInfo(zone))
    except OverflowError:
        return moment


def today(now: int, zone: str) -> int:
    """Return the day of `now` in a time zone, in the stored form of a bare date.

    At the limits of the calendar it is the day in UTC. Raises ZoneInfoNotFoundError.
    """
    return (local(now, zone).toordinal() - _EPOCH_DAY) * DAY


def begin(day: int, zone: str) -> int:
    """Return the instant at which a day begins in a zone; at the limits of the calendar, in UTC."""
    try:
        local = (_EPOCH + timedelta(microseconds=day)).replace(tzinfo=ZoneInfo(zone))
        return (local.astimezone(UTC) - _EPOCH) // _MICROSECOND
    except OverflowError:
        return day


def settled(value: Any, zone: str) -> Any:
    """Return `value`, or for a Day the instant at which it begins in a time zone."""
    return value.begins(zone) if isinstance(value, Day) else value


class Moment:
    """The time `now` for an owner in the time zone `zone`, whose day is computed at most once."""

    def __init__(self, now: int, zone: str) -> None:
        self.now = now
        self.zone = zone

    @cached_property
    def today(self) -> int:
        return today(self.now, self.zone)

    def has_passed(self, at: int, is_day: bool) -> bool:
        """Return whether a date has passed: an instant by the clock, a bare date after its day."""
        return at < (self.today if is_day else self.now)


def month(day: int) -> tuple[int, int]:
    """Return the first and last day of the month of `day`, in the stored form of bare dates."""
    first = (_EPOCH + timedelta(microseconds=day)).replace(day=1)
    last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    return (first - _EPOCH) // _MICROSECOND, (last - _EPOCH) // _MICROSECOND


def after(micros: int) -> int:
    """Return the first instant that is shown later than this one, whose thousandths are shown."""
    return micros - micros % 1_000 + 1_000


# A list shows the same instants many times.
@lru_cache(maxsize=16_384)
def show(micros: int) -> str:
    """Return `YYYY-MM-DDTHH:MM:SS.sssZ`. Raises OverflowError outside the years 1 to 9999."""
    seconds, rest = divmod(micros, SECOND)
    # strftime does not pad years below 1000 on every platform; isoformat does.
    return f"{(_EPOCH + timedelta(seconds=seconds)).isoformat()[:19]}.{rest // 1000:03d}Z"
