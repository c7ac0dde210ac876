"""Converts times between microseconds UTC and what is typed in the owner's time zone."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from gateway.console.layout.reader import EPOCH
from gateway.records.values import dates

DATE = dates.DAY_LENGTH


def local(micros: int, zone: str, *, bare: bool) -> str:
    """Return a time as it would be typed; a `bare` date, which is stored as 00:00 UTC, as one."""
    moment = EPOCH + timedelta(microseconds=micros)
    if bare:
        return moment.date().isoformat()
    try:
        there = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    except OverflowError:
        there = moment.replace(tzinfo=None)
    if there.microsecond:
        return there.isoformat(timespec="milliseconds")
    return there.isoformat(timespec="seconds" if there.second else "minutes")


def instant(text: str, zone: str, *, bare: bool) -> str | None:
    """Return a typed time in ISO 8601; what is none stays as it is, and the declaration refuses it.

    A date alone stays one where a bare date can be kept, and else is its first moment.
    """
    if not text or (bare and len(text) == DATE):
        return text or None
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=ZoneInfo(zone))
        return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError):
        return text
