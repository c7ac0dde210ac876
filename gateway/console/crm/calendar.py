"""The calendar of tasks: a month of days in the owner's time zone, and the lists by due date."""

import re
from calendar import Calendar
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from aiohttp import web
from babel.dates import format_skeleton, format_time, get_day_names

from gateway.console.crm import calendar_days
from gateway.console.layout import pages, templates
from gateway.console.layout.guard import SignedIn
from gateway.console.layout.reader import READER, Reader
from gateway.console.records import list_page
from gateway.console.records.sections import SECTIONS
from gateway.domain.contacts import task_days, tasks
from gateway.domain.contacts.task_days import Due
from gateway.records.audit import Actor
from gateway.records.query import Page
from gateway.records.values import dates
from gateway.server.app_keys import DB
from outbox.database.transaction import Tx

PATH = "/console/tasks/calendar"
MONTH = re.compile("([0-9]{4})-([0-9]{2})", re.ASCII)
DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
SHOWN = 4
"""Tasks of a day that the month shows; the rest is a number."""
FIRST, LAST = 1900, 2999
"""Years of the calendar."""
VIEWS: dict[str, Callable[[Tx, Actor, int, int], Awaitable[Page]]] = {
    "overdue": tasks.overdue,
    "upcoming": tasks.upcoming,
}
OF_DAY = "day"
"""The view of one day."""


@dataclass(frozen=True, slots=True)
class Day:
    """A day of the calendar with its tasks, each with its time, and whether it is overdue."""

    iso: str
    number: int
    words: str
    other: bool
    """Whether it belongs to another month."""
    today: bool
    tasks: Sequence[tuple[Due, str, bool]]
    more: int
    many: bool
    """Whether `more` is only the part that was counted."""


async def month(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show a month; query parameter `month`, such as 2026-11, by default the current one."""
    reader, database, actor = request[READER], request.app[DB], visitor.actor
    today = calendar_days.date_of(
        dates.today(database.clock.wall(), actor.zone), is_day=True, reader=reader
    )
    first = _first(request.query.get("month", ""), today)
    weeks = Calendar(reader.texts.locale.first_week_day).monthdatescalendar(first.year, first.month)
    days = [calendar_days.stored(day) for week in weeks for day in week]
    tasks_by_day = await database.scan(actor.owner_id, task_days.of_days, actor, days)

    at = dates.Moment(database.clock.wall(), actor.zone)

    def cell(day: date) -> Day:
        due = tasks_by_day[calendar_days.stored(day)]
        shown = [(one, _time(one, reader), _is_late(one, at)) for one in due[:SHOWN]]
        return Day(
            iso=day.isoformat(),
            number=day.day,
            words=calendar_days.words(day, reader, "full"),
            other=day.month != first.month,
            today=day == today,
            tasks=shown,
            more=max(0, len(due) - SHOWN),
            many=len(due) == task_days.MOST,
        )

    before, after = first - timedelta(days=1), first + timedelta(days=31)
    context = {
        "calendar": PATH, "title": _title(first, reader),
        "weeks": [[cell(day) for day in week] for week in weeks],
        "names": _names(reader), "before": f"{before:%Y-%m}" if before.year >= FIRST else "",
        "after": f"{after:%Y-%m}" if after.year <= LAST else "", "this": f"{first:%Y-%m}",
        "is_current": (first.year, first.month) == (today.year, today.month),
    }  # fmt: skip
    return templates.render(request, visitor, "calendar.html", context)


async def due(view: str, request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the tasks of a view: overdue, due within a week, or of the query parameter `day`."""
    if view in VIEWS:
        return await list_page.ordered(SECTIONS["tasks"], request, visitor, view, VIEWS[view])
    text = request.query.get("day", "")
    at = dates.parse(text) if DAY.fullmatch(text) else None
    if at is None:
        return pages.to(PATH)
    day = dates.Day(at)

    async def of_day(tx: Tx, actor: Actor, page: int, limit: int) -> Page:
        return await tasks.calendar(tx, actor, page, limit, day, day)

    return await list_page.ordered(SECTIONS["tasks"], request, visitor, OF_DAY, of_day)


def _first(text: str, today: date) -> date:
    match = MONTH.fullmatch(text)
    if match and FIRST <= int(match[1]) <= LAST and 1 <= int(match[2]) <= 12:
        return date(int(match[1]), int(match[2]), 1)
    return today.replace(day=1)


def _title(first: date, reader: Reader) -> str:
    title = str(format_skeleton("yMMMM", first, locale=reader.texts.locale))
    return title[:1].upper() + title[1:]


def _names(reader: Reader) -> list[tuple[str, str]]:
    """Return short and whole names of the days of a week, from its first day."""
    locale = reader.texts.locale
    short = get_day_names("abbreviated", "stand-alone", locale)
    whole = get_day_names("wide", "stand-alone", locale)
    order = [(locale.first_week_day + place) % 7 for place in range(7)]
    return [(short[day], whole[day]) for day in order]


def _is_late(due: Due, at: dates.Moment) -> bool:
    return not due.completed and at.has_passed(due.due_at, due.due_day)


def _time(due: Due, reader: Reader) -> str:
    if due.due_day:
        return ""
    moment = dates.local(due.due_at, reader.zone.key)
    return str(format_time(moment, "short", locale=reader.texts.locale))
