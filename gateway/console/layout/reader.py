"""Describes how a visitor reads a page: in which language, and in which time zone."""

import html
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from aiohttp import web
from babel.dates import format_datetime, format_skeleton
from markupsafe import Markup

from gateway.records.values import dates
from gateway.texts import UNITS, Texts
from outbox.durations import DAY, MINUTE, SECOND

QUARTER = 15 * MINUTE
QUICK = 3 * 365 * DAY
"""Earlier distances from UTC may have other minutes."""
EXACT = "d MMM y, HH:mm:ss.SSS ZZZZ"


@dataclass(frozen=True, slots=True)
class Reader:
    """Formats times, which are in microseconds UTC, for a person in `zone`."""

    texts: Texts
    zone: ZoneInfo

    def exact(self, micros: int) -> str:
        """Return the exact time with its distance from UTC, for a comparison with logs."""
        if micros < QUICK:
            return self._as(self._local(micros), EXACT)
        # As Babel writes it, which takes far longer; a list has a hundred of them.
        quarter, rest = divmod(micros, QUARTER)
        before, minute, away = _quarter(self.texts, self.zone, quarter)
        minutes, rest = divmod(rest, MINUTE)
        return f"{before}{minute + minutes:02}:{rest // SECOND:02}.{rest % SECOND // 1000:03}{away}"

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
        return Markup(self.relative(micros, now))  # noqa: S704 - digits, names of months, and our texts

    def relative(self, micros: int | None, now: int) -> str:
        """Return the same as plain HTML."""
        if micros is None:
            return f"<span>{_words(self.texts, 'time.never')}</span>"
        if 0 < micros - now < SECOND:
            words = _words(self.texts, "time.soon")
        elif micros > now:
            words = _words(self.texts, "time.in", span(micros - now + SECOND // 2))
        elif now - micros < 5 * SECOND:
            words = _words(self.texts, "time.now")
        else:
            words = _words(self.texts, "time.ago", span(now - micros))
        return f'<time datetime="{dates.show(micros)}" title="{self.exact(micros)}">{words}</time>'

    def _local(self, micros: int) -> datetime:
        return dates.local(micros, self.zone.key)

    def _as(self, moment: datetime, pattern: str) -> str:
        return str(format_datetime(moment, pattern, locale=self.texts.locale))


READER = web.RequestKey("CONSOLE_READER", Reader)


@lru_cache(maxsize=20_000)
def _quarter(texts: Texts, zone: ZoneInfo, quarter: int) -> tuple[str, int, str]:
    """Return what is before the minute, the first minute, and what is after the milliseconds.

    Since 1972 every distance from UTC, and every change of it, is at a quarter of an hour.
    """
    at = dates.local(quarter * QUARTER, zone.key)
    text = str(format_datetime(at, EXACT, locale=texts.locale))
    before, minute = text.split(f"{at.minute:02}:00.000")[0], at.minute
    return before, minute, text.partition(":00.000")[2]


@lru_cache(maxsize=2_000)
def _words(texts: Texts, key: str, span: str = "") -> str:
    return html.escape(texts(key, span=span) if span else texts(key))


def span(micros: int) -> str:
    """Return a duration in its largest unit, rounded down: `4 min`."""
    seconds = max(0, micros) // SECOND
    for size, unit in UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "0 s"
