"""Tasks: what an owner has to do, by when, and the verbs that end and resume it."""

from gateway import actions, dates, formats, store
from gateway.access import Caller
from gateway.actions import Shown
from gateway.listing import Plan
from gateway.resource import BY_TIME, LASTS, Beside, Field, Filter, Reference, Resource, Sort
from gateway.views import View, view
from outbox.database.transaction import Tx

PRIORITIES = ("low", "medium", "high")
WEEK = 7 * dates.DAY
MONTH = 31 * dates.DAY
"""How long a calendar is of which one bound was given."""
MOST = 1000
"""Default and most of `limit` in the lists by due date."""
DUE = "coalesce(due_at, 9223372036854775807)"
"""The due date, what has none last; indexed in exactly this spelling."""

TASKS = Resource(
    noun="task",
    plural="tasks",
    table="tasks",
    description="Something to be done.",
    fields=(
        Field("title", "title", formats.title(), "Title.", "Call back", required=True),
        Field(
            "description", "description", formats.text(formats.LONG), "What is to be done.",
            "Ask about the delivery date.",
        ),
        Field(
            "dueDate", "due_at", formats.instant(),
            "By when; a date without a time lasts until that day ends in the owner's time zone.",
            "2026-12-01T14:30:00.000Z", beside=(Beside("due_day", dates.is_day),),
        ),
        Field(
            "priority", "priority", formats.one_of(*PRIORITIES), "How urgent it is.", "high",
            default="medium",
        ),
        Field(
            "completed", "completed", formats.boolean(), "Whether it is done.", False,
            on_create=False, on_update=False, default=False,
        ),
        Field(
            "completedAt", "completed_at", formats.instant(), "When it was done.",
            "2026-11-30T09:00:00.000Z", on_create=False, on_update=False,
        ),
        Field(
            "contactId", "contact_id", formats.id_of("contact"), "The contact it is about.",
            "018f3a5b7c9d1e2f3a4b5c6e", reference=Reference("contact", "contacts"),
        ),
        Field(
            "dealId", "deal_id", formats.id_of("deal"), "The deal it is about.",
            "018f3a5b7c9d1e2f3a4b5c6f", reference=Reference("deal", "deals"),
        ),
    ),
    # The contract knows no task.updated.
    events={
        "created": ("id", "title", "dueDate", "priority", "createdAt"),
        "completed": ("id", "title", "completedAt"),
        "deleted": ("id",),
    },
    filters=(
        Filter(
            "completed", "completed = {}", formats.from_query(formats.boolean()),
            {"type": "boolean"}, "Only tasks that are done, or only those that are not.",
        ),
        Filter(
            "priority", "priority = {}", str, {"type": "string", "enum": list(PRIORITIES)},
            "Only tasks of this priority.",
        ),
        Filter(
            "contactId", f"contact_id = {{}} and {LASTS}", str.lower, {"type": "string"},
            "Only tasks about this contact.",
        ),
        Filter(
            "dealId", f"deal_id = {{}} and {LASTS}", str.lower, {"type": "string"},
            "Only tasks about this deal.",
        ),
    ),
    sorts=(*BY_TIME, Sort("dueDate", DUE)),
)  # fmt: skip


async def complete(tx: Tx, caller: Caller, task_id: str) -> View:
    """Mark a task as done; one that is done already stays as it is.

    Raises not_found, forbidden.
    """
    task = await actions.own(tx, caller, TASKS, task_id, "write", lock=True)
    if task[TASKS.position["completed"]]:
        return view(TASKS, task, tx.now, "UTC")
    task = await store.update(tx, TASKS, task, {"completed": True, "completed_at": tx.now})
    return actions.announce(tx, TASKS, "completed", task, "UTC")


async def reopen(tx: Tx, caller: Caller, task_id: str) -> View:
    """Mark a task as not done; one that is open already stays as it is. Emits nothing.

    Raises not_found, forbidden.
    """
    task = await actions.own(tx, caller, TASKS, task_id, "write", lock=True)
    if task[TASKS.position["completed"]]:
        task = await store.update(tx, TASKS, task, {"completed": False, "completed_at": None})
    return view(TASKS, task, tx.now, "UTC")


async def overdue(tx: Tx, caller: Caller, page: int, limit: int) -> Shown:
    """Open tasks whose due date has passed, earliest first. Raises forbidden.

    An instant passes by the clock, a day when it ends in the owner's time zone.
    """
    today = dates.today(tx.now, await actions.time_zone(tx, caller.user_id))
    wanted = _open(page, limit)
    _due(wanted, "<", tx.now, today)
    return await actions.page(tx, caller, TASKS, wanted)


async def upcoming(tx: Tx, caller: Caller, page: int, limit: int) -> Shown:
    """Open tasks that are due from now on to 7 days ahead, earliest first. Raises forbidden.

    A day is in as long as any of it is; none is both overdue and upcoming.
    """
    zone, until = await actions.time_zone(tx, caller.user_id), tx.now + WEEK
    wanted = _open(page, limit)
    _due(wanted, ">=", tx.now, dates.today(tx.now, zone))
    _due(wanted, "<=", until, dates.today(until, zone))
    return await actions.page(tx, caller, TASKS, wanted)


async def calendar(
    tx: Tx, caller: Caller, page: int, limit: int, start: str = "", end: str = ""
) -> Shown:
    """Tasks that are due from `start` to `end`, open or not, earliest first. Raises forbidden.

    The bounds are ISO 8601, both inclusive; days are the owner's. One that cannot be read finds
    nothing.
    """
    wanted = Plan(page, limit, order=f"{DUE}, id", walks=False)
    zone = await actions.time_zone(tx, caller.user_id)
    bounds = _period(start.strip(), end.strip(), dates.today(tx.now, zone), zone)
    if bounds is None:
        wanted.empty = True
    else:
        first, last = bounds
        _due(wanted, ">=", first, dates.today(first, zone), DUE)
        _due(wanted, "<=", last, dates.today(last, zone), DUE)
    return await actions.page(tx, caller, TASKS, wanted)


def _open(page: int, limit: int) -> Plan:
    return Plan(
        page, limit, "owner_id = $1 and completed_at is null", order="due_at, id", walks=False
    )


def _due(wanted: Plan, compare: str, instant: int, day: int, due: str = "due_at") -> None:
    """Bound the due date: one with a time by `instant`, one without by `day`.

    `due` is the spelling of the column that the list's index has.
    """
    # The outer bound is for the index; the two days differ by little.
    outer = min(instant, day) if compare == ">=" else max(instant, day)
    wanted.narrow(f"{due} {compare} {{}}", outer)
    wanted.narrow(f"({due} {compare} {{}} or due_day)", instant)
    wanted.narrow(f"({due} {compare} {{}} or due_day is not true)", day)


def _period(start: str, end: str, today: int, zone: str) -> tuple[int, int] | None:
    """First and last instant of a calendar; None when a bound cannot be read.

    Without both it is the month of `today`, without one it is 31 days.
    """
    if not start and not end:
        one, other = dates.month(today)
        return dates.begin(one, zone), dates.Day(other).ends(zone)
    first = dates.bound(start) if start else 0
    last = dates.bound(end) if end else 0
    if first is None or last is None:
        return None
    if not end:
        last = first + MONTH if isinstance(first, int) else dates.Day(first.day + MONTH - dates.DAY)
    if not start:
        first = last - MONTH if isinstance(last, int) else dates.Day(last.day - MONTH + dates.DAY)
    begins = first if isinstance(first, int) else first.begins(zone)
    return begins, last if isinstance(last, int) else last.ends(zone)
