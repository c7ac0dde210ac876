"""The charts of one page: the ranges of time, the figures of one, drawings, axis and table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from aiohttp import web
from babel import Locale
from babel.dates import format_skeleton

from gateway.console.layout import charts
from gateway.console.layout.charts import Chart
from gateway.console.layout.reader import Reader
from gateway.domain.webhooks.overviews import Steps
from gateway.server.app_keys import DB
from gateway.server.installation import WEBHOOK_RULES
from outbox.durations import DAY, SECOND
from outbox.queue.log.chart_figures import Figures, total
from outbox.queue.state.attempt_counts import LEVELS

MARKS = 3
"""The axis of time has a label at the start of each third, and `now` at its end."""


@dataclass(frozen=True, slots=True)
class Range:
    """A stretch of time up to now: `count` steps of `step` microseconds."""

    name: str
    step: int
    count: int
    poll: int
    """Seconds between two looks at a page with this range."""

    @property
    def length(self) -> int:
        """Microseconds."""
        return self.step * self.count

    def start(self, now: int) -> int:
        """Return the start of the first step; the last one contains `now`."""
        return now // self.step * self.step + self.step - self.length

    def marks(self, now: int, zone: str, locale: Locale) -> Sequence[str]:
        """Return the labels of the axis, without the last one, which is now."""
        start, third = self.start(now), self.length // MARKS
        return [self._mark(start + number * third, zone, locale) for number in range(MARKS)]

    def label(self, at: int, zone: str, locale: Locale) -> str:
        """Return the name of the step that starts at `at`: `Nov 22, 13:15–13:30`."""
        first, last = _local(at, zone), _local(at + self.step, zone)
        return f"{_day(first, locale)}, {first:%H:%M}–{last:%H:%M}"

    def _mark(self, at: int, zone: str, locale: Locale) -> str:
        moment = _local(at, zone)
        return f"{moment:%H:%M}" if self.length <= DAY else _day(moment, locale)


NAMED = (("3h", 5), ("24h", 5), ("7d", 15), ("30d", 30))
LONGEST = 30 * DAY
RANGES = tuple(
    Range(name, span, (kept or LONGEST) // span, poll)
    for (name, poll), (span, kept) in zip(NAMED, LEVELS, strict=True)
)
"""Each range has the steps that are stored for it."""
USUAL = RANGES[1]


def offered(days: int) -> Sequence[Range]:
    """Return the ranges that hold something when figures are kept for `days`."""
    return [one for one in RANGES if one.length <= max(days, 1) * DAY]


def chosen(name: str, days: int) -> Range:
    """Return the range of this name, the usual one for an unknown name."""
    return next((one for one in offered(days) if one.name == name), USUAL)


@dataclass(frozen=True, slots=True)
class Board:
    """What the template of charts shows; `since` is set when counting began inside the range."""

    range: Range
    ranges: Sequence[Range]
    total: Figures
    charts: Sequence[Chart]
    marks: Sequence[str]
    rows: Sequence[tuple[int, str, Figures]]
    """Steps with attempts, the latest first: place, label, figures."""
    since: int | None


@dataclass(frozen=True, slots=True)
class Window:
    """The range that a request asks for, at one moment."""

    range: Range
    now: int
    days: int

    @property
    def steps(self) -> Steps:
        """The steps of the range; the last one contains `now`."""
        return Steps(self.range.start(self.now), self.range.step, self.range.count)

    def board(
        self, steps: Sequence[Figures], reader: Reader, since: int, oldest: int | None
    ) -> Board:
        """Return the charts; `oldest` is when the first of the webhooks was created."""
        zone, locale = reader.zone.key, reader.texts.locale
        start = self.range.start(self.now)
        rows = [
            (place, self.range.label(start + place * self.range.step, zone, locale), step)
            for place, step in enumerate(steps)
            if step.results.total()
        ]
        drawings = (charts.attempts(steps), charts.rate(steps), charts.durations(steps))
        partial = oldest is not None and oldest < since and since > start
        return Board(
            range=self.range,
            ranges=offered(self.days),
            total=total(steps),
            charts=drawings,
            marks=self.range.marks(self.now, zone, locale),
            rows=rows[::-1],
            since=since if partial else None,
        )


def window(request: web.Request) -> Window:
    """Return the range of the query parameter `range`."""
    days = request.app[WEBHOOK_RULES].deliveries_days
    return Window(chosen(request.query.get("range", ""), days), request.app[DB].clock.wall(), days)


def _local(at: int, zone: str) -> datetime:
    return datetime.fromtimestamp(at // SECOND, ZoneInfo(zone))


def _day(moment: datetime, locale: Locale) -> str:
    return str(format_skeleton("MMMd", moment, locale=locale))
