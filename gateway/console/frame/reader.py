"""Describes how a visitor reads a page: in which language, and in which time zone."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from aiohttp import web
from babel.dates import format_datetime
from markupsafe import Markup

from gateway import texts
from gateway.console.frame.guard import Visitor
from gateway.records.values import dates
from gateway.texts import UNITS, Texts
from outbox.durations import SECOND

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EXACT = "d MMM y, HH:mm:ss.SSS ZZZZ"


@dataclass(frozen=True, slots=True)
class Reader:
    """Formats times, which are in microseconds UTC, for a person in `zone`."""

    texts: Texts
    zone: ZoneInfo

    def exact(self, micros: int) -> str:
        """Return the exact time with its distance from UTC, for a comparison with logs."""
        moment = (EPOCH + timedelta(microseconds=micros)).astimezone(self.zone)
        return str(format_datetime(moment, EXACT, locale=self.texts.locale))

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
        return Markup('<time datetime="{}" title="{}">{}</time>').format(
            dates.show(micros), self.exact(micros), words
        )


READER = web.RequestKey("CONSOLE_READER", Reader)


def reader_of(request: web.Request, visitor: Visitor | None) -> Reader:
    """Return how the visitor reads: as the account says, else as the browser does."""
    session = visitor.session if visitor is not None else None
    asked = texts.asked(request.headers.get("Accept-Language", ""))
    language = session.language if session is not None else None
    zone = session.zone if session is not None else "UTC"
    return Reader(texts.of(language or asked), ZoneInfo(zone))


def span(micros: int) -> str:
    """Return a duration in its largest unit, rounded down: `4 min`."""
    seconds = max(0, micros) // SECOND
    for size, unit in UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "0 s"
