"""Declares tasks, and implements their verbs and lists by due date."""

from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.query import Page, Query
from gateway.records.record import Draft, Record
from gateway.records.resource import (
    BY_TIME,
    LASTS,
    DerivedColumn,
    Field,
    Filter,
    Reference,
    Resource,
    empty_last,
)
from gateway.records.values import dates, formats, instants
from outbox.database.transaction import Tx
from outbox.durations import DAY

Bound = int | dates.Day
PRIORITIES = ("low", "medium", "high")
WEEK = 7 * DAY
MONTH = 31 * DAY
"""Length of a calendar with only one bound."""
MOST = 1000
"""Default and maximum of `limit` in the lists by due date."""
DUE = "coalesce(due_at, 9223372036854775807)"
"""The sort key of the due date, tasks without one last; indexed in exactly this spelling."""

TASKS = Resource(
    noun="task",
    plural="tasks",
    table="tasks",
    description="A task of an owner.",
    fields=(
        Field("title", "title", formats.title(), "Title.", "Call back", required=True),
        Field(
            "description", "description", formats.text(formats.LONG), "Description.",
            "Ask about the delivery date.",
        ),
        Field(
            "dueDate", "due_at", instants.instant(),
            "Due date; a date without a time means the end of that day in the owner's time zone.",
            "2026-12-01T14:30:00.000Z",
            beside=(DerivedColumn("due_day", dates.is_bare, part=True),),
        ),
        Field(
            "priority", "priority", formats.one_of(*PRIORITIES), "Priority.", "high",
            default="medium",
        ),
        Field(
            "completed", "completed", formats.boolean(), "Whether the task is done.", False,
            on_create=False, on_update=False, on_import=True, default=False,
        ),
        Field(
            "completedAt", "completed_at", instants.moment(), "Time of completion.",
            "2026-11-30T09:00:00.000Z", on_create=False, on_update=False, on_import=True,
        ),
        Field(
            "contactId", "contact_id", formats.id_of("contact"), "The contact of the task.",
            "018f3a5b7c9d1e2f3a4b5c6e", reference=Reference("contact", "contacts"),
        ),
        Field(
            "dealId", "deal_id", formats.id_of("deal"), "The deal of the task.",
            "018f3a5b7c9d1e2f3a4b5c6f", reference=Reference("deal", "deals"),
        ),
    ),
    # The contract has no event task.updated.
    events={
        "created": ("id", "title", "dueDate", "priority", "createdAt"),
        "completed": ("id", "title", "completedAt"),
        "deleted": ("id",),
    },
    filterable=("priority", "completed"),
    known_after={"created": {"completed": False}, "completed": {"completed": True}},
    search=("title",),
    filters=(
        Filter(
            "completed", "completed = {}", "boolean",
            "Only tasks that are done (true) or not done (false).",
        ),
        Filter(
            "priority", "priority = {}", "text", "Only tasks of this priority.", PRIORITIES,
        ),
        Filter(
            "contactId", f"contact_id = {{}} and {LASTS}", "id", "Only tasks about this contact.",
        ),
        Filter(
            "dealId", f"deal_id = {{}} and {LASTS}", "id", "Only tasks about this deal.",
        ),
    ),
    sorts=(*BY_TIME, empty_last("dueDate", "due_at")),
)  # fmt: skip


async def complete(tx: Tx, actor: Actor, record_id: str) -> Record:
    """Mark a task as done; a task that is already done does not change.

    Raises not_found, forbidden.
    """
    task = await actions.own(tx, actor, TASKS, record_id, "write", lock=True)
    return task if task["completed"] else await _done(tx, actor, task, tx.now)


async def _done(tx: Tx, actor: Actor, task: Record, at: int) -> Record:
    done = {"completed": True, "completed_at": at}
    return actions.announce(
        tx, "completed", await actions.update(tx, actor, task, done), before=task
    )


async def reopen(tx: Tx, actor: Actor, record_id: str) -> Record:
    """Mark a task as not done, without an event; an open task does not change.

    Raises not_found, forbidden.
    """
    task = await actions.own(tx, actor, TASKS, record_id, "write", lock=True)
    return await _open_again(tx, actor, task) if task["completed"] else task


async def _open_again(tx: Tx, actor: Actor, task: Record) -> Record:
    return await actions.update(tx, actor, task, {"completed": False, "completed_at": None})


async def restore(tx: Tx, actor: Actor, task: Record, draft: Draft) -> Record:
    """Complete or reopen a task as a file says. Raises the faults of the draft."""
    draft.must_hold()
    at = dates.settled(draft.sent.get("completedAt"), actor.zone)
    done = draft.sent.get("completed", at is not None or task["completed"])
    if done == bool(task["completed"]):
        return task
    return await (_done(tx, actor, task, at or tx.now) if done else _open_again(tx, actor, task))


async def overdue(tx: Tx, actor: Actor, page: int, limit: int) -> Page:
    """Return open tasks whose due date has passed, earliest first. Raises forbidden.

    An instant passes by the clock, a day at its end in the owner's time zone.
    """
    query = _open(page, limit)
    _due(query, "<", tx.now, dates.today(tx.now, actor.zone))
    return await actions.page(tx, actor, TASKS, query)


async def upcoming(tx: Tx, actor: Actor, page: int, limit: int) -> Page:
    """Return open tasks that are due within 7 days, earliest first. Raises forbidden.

    A day is upcoming while any part of it is; no task is both overdue and upcoming.
    """
    until = tx.now + WEEK
    query = _open(page, limit)
    _due(query, ">=", tx.now, dates.today(tx.now, actor.zone))
    _due(query, "<=", until, dates.today(until, actor.zone))
    return await actions.page(tx, actor, TASKS, query)


async def calendar(
    tx: Tx, actor: Actor, page: int, limit: int, start: Bound | None, end: Bound | None
) -> Page:
    """Return tasks that are due from `start` to `end`, open or done. Raises forbidden.

    Both bounds are inclusive; days are in the owner's time zone, and the earliest task is first.
    Without bounds the period is the current month, with one bound 31 days.
    """
    query = Query(page=page, limit=limit, ordered_by=f"{DUE}, id")
    first, last = _period(start, end, dates.today(tx.now, actor.zone), actor.zone)
    _due(query, ">=", first, dates.today(first, actor.zone), DUE)
    _due(query, "<=", last, dates.today(last, actor.zone), DUE)
    return await actions.page(tx, actor, TASKS, query)


def _open(page: int, limit: int) -> Query:
    query = Query(page=page, limit=limit, ordered_by="due_at, id")
    query.narrow("completed_at is null")
    return query


def _due(query: Query, compare: str, instant: int, day: int, due: str = "due_at") -> None:
    """Compare due dates with a time to `instant`, and due dates without a time to `day`.

    `due` is the expression that the list's index has.
    """
    # The outer bound lets the database use the index; the two bounds differ by little.
    outer = min(instant, day) if compare == ">=" else max(instant, day)
    query.narrow(f"{due} {compare} {{}}", outer)
    query.narrow(f"({due} {compare} {{}} or due_day)", instant)
    query.narrow(f"({due} {compare} {{}} or due_day is not true)", day)


def _period(start: Bound | None, end: Bound | None, today: int, zone: str) -> tuple[int, int]:
    """Return the first and last instant of a calendar."""
    if start is None and end is None:
        first_day, last_day = dates.month(today)
        return dates.begin(first_day, zone), dates.Day(last_day).ends(zone)
    first, last = start, end
    if last is None:
        assert first is not None, "one bound is set"
        last = first + MONTH if isinstance(first, int) else dates.Day(first.day + MONTH - DAY)
    if first is None:
        first = last - MONTH if isinstance(last, int) else dates.Day(last.day - MONTH + DAY)
    begins = first if isinstance(first, int) else first.begins(zone)
    return begins, last if isinstance(last, int) else last.ends(zone)
