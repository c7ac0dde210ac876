"""Handles the lists of tasks by due date."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from gateway.domain.contacts import tasks
from gateway.domain.contacts.tasks import TASKS
from gateway.records.audit import Actor
from gateway.records.query import MOST, Page
from gateway.records.values.schemas import MOMENT
from gateway.rest import lists
from gateway.rest.auth import authenticate
from gateway.rest.document import shapes
from gateway.rest.document.describe import PAGE, page_size
from gateway.rest.document.operations import Handler, Parameter, operation
from gateway.rest.params import bound, window
from gateway.rest.scans import scan
from gateway.server.http.rate_limits import LIMITS
from outbox.database.transaction import Tx

ByDate = Callable[[Tx, Actor, int, int], Awaitable[Page]]

WINDOW = (PAGE, page_size(tasks.MOST, tasks.MOST))
DUE = shapes.page_of(shapes.record(TASKS))


def _by_due_date(unit: ByDate) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        caller = await authenticate(request)
        page, limit = window(request.query, tasks.MOST, tasks.MOST)
        content = await scan(request, caller, "filtered", unit, page, limit)
        return _shown(request, caller, content, page, limit)

    return handle


overdue = operation(
    "listOverdueTasks", "Tasks", "Open tasks whose due date has passed", DUE,
    description="Earliest first; `total` counts all of them.", parameters=WINDOW,
)(_by_due_date(tasks.overdue))  # fmt: skip
upcoming = operation(
    "listUpcomingTasks", "Tasks", "Open tasks that are due within 7 days", DUE,
    description="Earliest first; `total` counts all of them.", parameters=WINDOW,
)(_by_due_date(tasks.upcoming))  # fmt: skip


@operation(
    "listTasksByDueDate", "Tasks", "Tasks of a period, for a calendar", DUE,
    description="Tasks that are due from `start` to `end`, both inclusive, done or not. Without "
    "bounds the period is the current month, with one bound 31 days.",
    parameters=(
        Parameter("start", MOMENT, "First instant or day.", "2026-12-01"),
        Parameter("end", MOMENT, "Last instant or day (inclusive).", "2026-12-31"),
        *WINDOW,
    ),
    refusals=("validation_error",),
)  # fmt: skip
async def calendar(request: web.Request) -> web.StreamResponse:
    """GET /api/tasks/calendar: list the tasks that are due from `start` to `end`."""
    caller = await authenticate(request)
    query = request.query
    page, limit = window(query, tasks.MOST, tasks.MOST)
    start, end = (bound(query[name]) if name in query else None for name in ("start", "end"))
    content = await scan(
        request, caller, "filtered", tasks.calendar, page, limit, start=start, end=end
    )
    return _shown(request, caller, content, page, limit)


def _shown(
    request: web.Request, caller: Actor, content: Page, page: int, limit: int
) -> web.StreamResponse:
    # Most of these lists are short whatever their limit, so a long one is paid for once it is read.
    request.app[LIMITS].read_more(caller.owner_id, (len(content.rest) + MOST - 1) // MOST)
    return lists.page(request, caller, TASKS, content, lists.envelope(content, page, limit), {})
