"""Describes how a visitor reads a page: in which language, and in which time zone."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import cache, lru_cache
from zoneinfo import ZoneInfo

from aiohttp import web
from babel.dates import format_datetime, format_skeleton
from markupsafe import Markup, escape

from gateway import texts
from gateway.console.frame.guard import Visitor
from gateway.records.values import dates
from gateway.texts import UNITS, Texts
from outbox.durations import DAY, SECOND

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_YEAR = 1900
"""Earlier distances from UTC have seconds."""
EXACT = "d MMM y, HH:mm:ss.SSS ZZZZ"


@dataclass(frozen=True, slots=True)
class Reader:
    """Formats times, which are in microseconds UTC, for a person in `zone`."""

    texts: Texts
    zone: ZoneInfo

    def exact(self, micros: int) -> str:
        """Return the exact time with its distance from UTC, for a comparison with logs."""
        at = self._local(micros)
        offset = at.utcoffset()
        if at.year < FIRST_YEAR or offset is None:
            return self._as(at, EXACT)
        # As Babel writes it, which takes ten times as long; a list has a hundred of them.
        month, away = _months(self.texts)[at.month - 1], _away(self.texts, offset)
        return (
            f"{at.day} {month} {at.year}, {at.hour:02}:{at.minute:02}:{at.second:02}"
            f".{at.microsecond // 1000:03} {away}"
        )

    def clock(self, micros: int, now: int) -> str:
        """Return a time for a sentence: `21:24`, `Tuesday 21:24`, `Dec 3, 21:24`."""
        moment, today = self._local(micros), self._local(now)
        time = self._as(moment, "HH:mm")
        if moment.date() == today.date():
            return time
        if abs(micros - now) < 6 * DAY:
            return f"{self._as(moment, 'EEEE')} {time}"
        return f"{self.day(micros)}, {time}"

    def day(self, micros: int) -> str:
        """Return a day without its year: `Nov 22`."""
        return str(format_skeleton("MMMd", self._local(micros), locale=self.texts.locale))

    def time(self, micros: int) -> str:
        """Return a time of day: `21:24`."""
        return self._as(self._local(micros), "HH:mm")

    def when(self, micros: int | None, now: int) -> Markup:
        """Return a time as `<time>`: relative in the text, exact in the title."""
        t = self.texts
        if micros is None:
            return Markup("<span>{}</span>").format(t("time.never"))
        if 0 < micros - now < SECOND:
            words = t("time.soon")
        elif micros > now:
            words = t("time.in", span=span(micros - now + SECOND // 2))
        elif now - micros < 5 * SECOND:
            words = t("time.now")
        else:
            words = t("time.ago", span=span(now - micros))
        shown, exact = dates.show(micros), self.exact(micros)
        return Markup(f'<time datetime="{shown}" title="{exact}">{escape(words)}</time>')  # noqa: S704 - the rest are digits and names of months

    def _local(self, micros: int) -> datetime:
        return (EPOCH + timedelta(microseconds=micros)).astimezone(self.zone)

    def _as(self, moment: datetime, pattern: str) -> str:
        return str(format_datetime(moment, pattern, locale=self.texts.locale))


READER = web.RequestKey("CONSOLE_READER", Reader)


def reader_of(request: web.Request, visitor: Visitor | None) -> Reader:
    """Return how the visitor reads: as the account says, else as the browser does."""
    session = visitor.session if visitor is not None else None
    asked = texts.asked(request.headers.get("Accept-Language", ""))
    language = session.language if session is not None else None
    zone = session.zone if session is not None else "UTC"
    return Reader(texts.of(language or asked), ZoneInfo(zone))


@cache
def _months(texts: Texts) -> list[str]:
    names = texts.locale.months["format"]["abbreviated"]
    return [names[number] for number in range(1, 13)]


@lru_cache(maxsize=200)
def _away(texts: Texts, offset: timedelta) -> str:
    """Return a distance from UTC in words: `GMT-03:00`."""
    at = datetime(2000, 1, 1, tzinfo=timezone(offset))
    return str(format_datetime(at, "ZZZZ", locale=texts.locale))


def span(micros: int) -> str:
    """Return a duration in its largest unit, rounded down: `4 min`."""
    seconds = max(0, micros) // SECOND
    for size, unit in UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "0 s"
