"""The charts of a page: the range of time that it shows, and its figures as SVG paths with axes.

A chart is as wide as its number of steps times STEP_WIDTH, and 100 high. The page stretches it, so
texts are no part of it. A line is flat over each step, because a figure is that of a whole step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import floor, log10

from aiohttp import web
from babel import Locale
from babel.dates import format_skeleton

from gateway.console.layout.reader import Reader
from gateway.domain.webhooks.overviews import Steps
from gateway.records.values import dates
from gateway.server.app_keys import DB
from gateway.server.installation import WEBHOOK_RULES
from outbox.durations import DAY, SECOND
from outbox.queue.log.chart_figures import Figures, total
from outbox.queue.state.attempt_counts import LEVELS

STEP_WIDTH = 10
LEAST_HEIGHT = 2
"""A bar of one failure among thousands of successes is still seen."""
TOPS = (2, 4, 6, 10)
"""The last label of an axis is one of these times a power of ten; half of it is a whole number."""
SHORT = ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k"))


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing: its axis from top to bottom, the heights of its lines, and a path per series."""

    name: str
    width: int
    ticks: Sequence[str]
    paths: Sequence[tuple[str, str]]

    @property
    def grid(self) -> Sequence[float]:
        """The heights at which the labels of the axis stand."""
        last = len(self.ticks) - 1
        return [round(100 * place / last, 1) for place in range(last + 1)]


def attempts(steps: Sequence[Figures]) -> Chart:
    """Draw the attempts of each step as a bar: the successful ones, and on them the failed ones."""
    most = max((step.succeeded + step.failed for step in steps), default=0)
    top = _top(most)
    good, bad = [], []
    for place, step in enumerate(steps):
        low = _height(step.succeeded, top)
        high = _height(step.failed, top)
        low = min(low, 100 - high)
        good.append(_bar(place, 0, low))
        bad.append(_bar(place, low, high))
    ticks = (short(top), short(top // 2), "0")
    paths = (("good", "".join(good)), ("bad", "".join(bad)))
    return Chart("attempts", len(steps) * STEP_WIDTH, ticks, paths)


def rate(steps: Sequence[Figures]) -> Chart:
    """Draw the part of the attempts that succeeded."""
    heights = [None if step.rate is None else 100 * step.rate for step in steps]
    ticks = ("100 %", "50 %", "0 %")
    return Chart("rate", len(steps) * STEP_WIDTH, ticks, (("good", _line(heights)),))


def durations(steps: Sequence[Figures]) -> Chart:
    """Draw the median and the 95th percentile of durations, on an axis of powers of ten."""
    medians = [step.duration(0.5) for step in steps]
    slow = [step.duration(0.95) for step in steps]
    known = [value for value in (*medians, *slow) if value]
    least = floor(log10(min(known, default=10_000)))
    most = max(floor(log10(max(known, default=10_000) - 1)) + 1, least + 1)
    ticks = [power(exponent) for exponent in range(most, least - 1, -1)]

    def heights(values: Sequence[int | None]) -> list[float | None]:
        scale = 100 / (most - least)
        return [
            None if value is None else max(0.0, log10(max(value, 1)) - least) * scale
            for value in values
        ]

    paths = (("slow", _line(heights(slow))), ("median", _line(heights(medians))))
    return Chart("durations", len(steps) * STEP_WIDTH, ticks, paths)


def short(count: int) -> str:
    """Return a number for an axis: `40`, `2k`, `1.5M`."""
    for size, letter in SHORT:
        if count >= size:
            return f"{count / size:g}{letter}"
    return str(count)


def power(exponent: int) -> str:
    """Return ten to this power of microseconds as text: `10 ms`, `1 s`."""
    micros = 10**exponent
    return f"{micros / 1000:g} ms" if micros < SECOND else f"{micros // SECOND} s"


def _top(most: int) -> int:
    size = int("1" + "0" * (len(str(most)) - 1))
    tops = [top * size for top in (1, *TOPS)]
    return next(top for top in tops if top >= max(most, 2))


def _height(count: int, top: int) -> float:
    return max(100 * count / top, LEAST_HEIGHT) if count else 0


def _bar(place: int, low: float, high: float) -> str:
    if not high:
        return ""
    return f"M{place * STEP_WIDTH + 1} {100 - low:.4g}v{-high:.4g}h{STEP_WIDTH - 2}v{high:.4g}z"


def _line(heights: Sequence[float | None]) -> str:
    return "".join(_pieces(heights))


def _pieces(heights: Sequence[float | None]) -> Iterator[str]:
    drawing = False
    for place, height in enumerate(heights):
        if height is not None:
            y = f"{100 - min(height, 100):.4g}"
            yield f"V{y}" if drawing else f"M{place * STEP_WIDTH} {y}"
            yield f"h{STEP_WIDTH}"
        drawing = height is not None


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
        first, last = dates.local(at, zone), dates.local(at + self.step, zone)
        return f"{_day(first, locale)}, {first:%H:%M}–{last:%H:%M}"

    def _mark(self, at: int, zone: str, locale: Locale) -> str:
        moment = dates.local(at, zone)
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
        drawings = (attempts(steps), rate(steps), durations(steps))
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


def _day(moment: datetime, locale: Locale) -> str:
    return str(format_skeleton("MMMd", moment, locale=locale))
