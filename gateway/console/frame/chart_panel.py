"""The charts of one page: the chosen range, its figures, drawings, axis and table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web

from gateway.console.frame import charts
from gateway.console.frame.charts import Chart
from gateway.console.frame.ranges import Range, chosen, offered
from gateway.server.app_keys import CONFIG, DB
from outbox.queue.log import series
from outbox.queue.log.series import Figures


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
    def start(self) -> int:
        """The start of the first step."""
        return self.range.start(self.now)

    @property
    def end(self) -> int:
        """The end of the last step."""
        return self.start + self.range.length

    def board(self, steps: Sequence[Figures], zone: str, since: int, oldest: int | None) -> Board:
        """Return the charts; `oldest` is when the first of the webhooks was created."""
        rows = [
            (place, self.range.label(self.start + place * self.range.step, zone), step)
            for place, step in enumerate(steps)
            if step.results.total()
        ]
        drawn = (charts.attempts(steps), charts.rate(steps), charts.durations(steps))
        partial = oldest is not None and oldest < since and since > self.start
        return Board(
            self.range, offered(self.days), series.total(steps), drawn,
            self.range.marks(self.now, zone), rows[::-1], since if partial else None,
        )  # fmt: skip


def window(request: web.Request) -> Window:
    """Return the range of the query parameter `range`."""
    days = request.app[CONFIG].retention.deliveries_days
    return Window(chosen(request.query.get("range", ""), days), request.app[DB].clock.wall(), days)
