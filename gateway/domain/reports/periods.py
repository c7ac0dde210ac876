"""Computes the time span of a report and its days, weeks or months.

A day is its date at 00:00 UTC, the stored form of bare dates in records.values.dates; instants are
microseconds UTC.
"""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

from gateway.records.errors import Fault, Refusal
from gateway.records.values import dates, zones
from outbox.durations import DAY

TIMES = ("day", "week", "month")
MOST = 1000
"""Most periods of a report."""
BACK = {"day": 30, "week": 12, "month": 12}
"""Default number of periods of a report, including the current one."""
# Far enough from the limits of the calendar for every time zone and period.
_FIRST, _LAST = -70 * 366 * DAY, 7000 * 365 * DAY
_EPOCH = date(1970, 1, 1)
_BOUND = "Send an ISO 8601 date or date-time, such as 2026-11-21."
"""The message for a bound that is invalid or outside the calendar."""


class Period(NamedTuple):
    """A period of time from `first` (inclusive) to `until` (exclusive)."""

    label: str
    first: int
    until: int


class Span(NamedTuple):
    """The time span of a report, None where it is unbounded, and its grouping."""

    first: int | None
    until: int | None
    zone: str
    group_by: str

    def periods(self) -> list[Period]:
        """Return the periods from `first` to `until`, the outer ones shortened.

        The labels are ISO 8601: 2026-11-21, 2026-W47, 2026-11. Raises validation_error.
        """
        assert self.first is not None, "a span by time has bounds"
        assert self.until is not None, "a span by time has bounds"
        periods: list[Period] = []
        day = _begin_of(self.group_by, _date_of(dates.today(self.first, self.zone)))
        begins = self.first
        while begins < self.until:
            if len(periods) == MOST:
                raise _refused(
                    "groupBy",
                    f"The report has more than {MOST} periods; send a shorter time or a longer "
                    "period.",
                )
            after = _next(self.group_by, day)
            ends = min(dates.begin(_day_of(after), self.zone), self.until)
            periods.append(Period(_label(self.group_by, day), begins, ends))
            day, begins = after, ends
        return periods


class ReportQuery(NamedTuple):
    """The parameters of a report; None and empty values mean the defaults."""

    first: int | dates.Day | None = None
    last: int | dates.Day | None = None
    """Inclusive."""
    zone: str = ""
    group_by: str = ""


def span(query: ReportQuery, group_by: Sequence[str], now: int, zone: str) -> Span:
    """Return the time span and grouping of a report; the first of `group_by` is the default.

    Days are in the requested time zone, by default `zone`. Raises validation_error.
    """
    if query.zone:
        zone = query.zone
        if zone not in zones.names():
            raise _refused("timezone", "Send an IANA time zone such as America/Sao_Paulo.")
    group = query.group_by or group_by[0]
    if group not in group_by:
        raise _refused("groupBy", f"Send one of: {', '.join(group_by)}.")
    begins = _first("from", query.first, zone)
    ends = _first("to", query.last, zone)
    if isinstance(query.last, dates.Day):
        ends = dates.begin(query.last.day + DAY, zone)
    elif ends is not None:
        ends = dates.after(ends)
    if group in TIMES:
        if ends is None:
            ends = dates.begin(dates.today(now, zone) + DAY, zone)
        if begins is None:
            day = _begin_of(group, _date_of(dates.today(ends - 1, zone)))
            for _ in range(BACK[group] - 1):
                day = _begin_of(group, day - timedelta(days=1))
            begins = dates.begin(_day_of(day), zone)
    if begins is not None and ends is not None and begins >= ends:
        raise _refused("to", "to must not be before from.")
    return Span(begins, ends, zone, group)


def _first(name: str, bound: int | dates.Day | None, zone: str) -> int | None:
    """Return the instant of a bound; for a day, its begin."""
    if bound is None:
        return None
    if not _FIRST < (bound.day if isinstance(bound, dates.Day) else bound) < _LAST:
        raise _refused(name, _BOUND)
    return bound.begins(zone) if isinstance(bound, dates.Day) else bound


def _begin_of(group_by: str, day: date) -> date:
    if group_by == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if group_by == "month" else day


def _next(group_by: str, day: date) -> date:
    length = {"day": 1, "week": 7, "month": 31}[group_by]
    return _begin_of(group_by, day + timedelta(days=length))


def _label(group_by: str, day: date) -> str:
    if group_by == "week":
        year, week, _ = day.isocalendar()
        return f"{year}-W{week:02d}"
    return day.isoformat()[:7] if group_by == "month" else day.isoformat()


def _date_of(day: int) -> date:
    return _EPOCH + timedelta(days=day // DAY)


def _day_of(day: date) -> int:
    return (day - _EPOCH).days * DAY


def _refused(name: str, message: str) -> Refusal:
    fault = Fault(name, "invalid_parameter", message)
    return Refusal("validation_error", fault.sentence, faults=[fault])
