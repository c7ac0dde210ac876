"""Handlers of the sales records that are not plain ones: figures, lists by date, the pipeline."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web
from msgspec import Struct

from gateway import actions
from gateway.access import Actor
from gateway.appkeys import DB
from gateway.auth import authenticate
from gateway.query import Page, Query
from gateway.resources.crm import activities, deals, pipelines, tasks
from gateway.resources.crm.activities import ACTIVITIES
from gateway.resources.crm.deals import PipelineStats, StageStats
from gateway.resources.crm.pipelines import PIPELINE, STAGES
from gateway.resources.crm.tasks import TASKS
from gateway.rest import lists, shapes
from gateway.rest.body import draft, read_body
from gateway.rest.entries import IF_MATCH, IF_NONE_MATCH, PAGE, page_size
from gateway.rest.errors import JSON
from gateway.rest.handlers import show, show_change
from gateway.rest.operations import Handler, Parameter, operation
from gateway.rest.params import bound, expected_of, window
from gateway.rest.wire import View, quoted
from outbox.database.transaction import Tx

ByDate = Callable[[Tx, Actor, int, int], Awaitable[Page]]

STATS = PipelineStats(
    3, 22500.5, {"proposal": StageStats(2, 20000.5), "closing": StageStats(1, 2500)}, 1, 1, 50.0
)
WINDOW = (PAGE, page_size(tasks.MOST, tasks.MOST))
DUE = shapes.page_of(shapes.record(TASKS), walks=False)
BOUND = {"type": "string", "anyOf": [{"format": "date-time"}, {"format": "date"}]}


@operation(
    "getPipelineStats", "Deals", "Figures over all deals", shapes.struct(STATS),
    description="All deals of the caller, whatever their status; a deal without a stage counts "
    "under `(none)`. `conversionRate` is a percentage: 100 x won / (won + lost), with 2 decimals, "
    "and 0 while none is won or lost.",
)  # fmt: skip
async def pipeline_stats(request: web.Request) -> web.Response:
    """GET /api/deals/pipeline-stats: figures over all deals of the caller."""
    caller = await authenticate(request)
    return _answer(await request.app[DB].read(deals.pipeline_stats, caller))


def _by_due_date(unit: ByDate) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        caller = await authenticate(request)
        page, limit = window(request.query, tasks.MOST, tasks.MOST)
        found = await lists.read(request, unit, caller, page, limit)
        return lists.page(request, caller, TASKS, found, _beside(found, page, limit), {})

    return handle


overdue = operation(
    "listOverdueTasks", "Tasks", "Open tasks whose due date has passed", DUE,
    description="Earliest first; `total` is how many there are in all.", parameters=WINDOW,
)(_by_due_date(tasks.overdue))  # fmt: skip
upcoming = operation(
    "listUpcomingTasks", "Tasks", "Open tasks that are due within 7 days", DUE,
    description="Earliest first; `total` is how many there are in all.", parameters=WINDOW,
)(_by_due_date(tasks.upcoming))  # fmt: skip


@operation(
    "listTasksByDueDate", "Tasks", "Tasks of a period, for a calendar", DUE,
    description="Tasks that are due from `start` to `end`, both inclusive, done or not. Without "
    "bounds it is the current month, with one of them 31 days. A bound that cannot be read finds "
    "nothing.",
    parameters=(
        Parameter("start", BOUND, "First instant or day.", "2026-12-01"),
        Parameter("end", BOUND, "Last instant or day; a day counts to its end.", "2026-12-31"),
        *WINDOW,
    ),
)  # fmt: skip
async def calendar(request: web.Request) -> web.StreamResponse:
    """GET /api/tasks/calendar: the tasks that are due from `start` to `end`."""
    caller = await authenticate(request)
    query = request.query
    page, limit = window(query, tasks.MOST, tasks.MOST)
    texts = [query.get(name, "").strip() for name in ("start", "end")]
    bounds = [bound(text) for text in texts]
    if any(text and found is None for text, found in zip(texts, bounds, strict=True)):
        nothing = Query(page=page, limit=limit, nothing=True)
        found = await lists.read(request, actions.page, caller, TASKS, nothing)
    else:
        found = await lists.read(request, tasks.calendar, caller, page, limit, *bounds)
    return lists.page(request, caller, TASKS, found, _beside(found, page, limit), {})


@operation(
    "listRecentActivities", "Activities", "The latest activities",
    shapes.list_of(shapes.record(ACTIVITIES), "RecentActivities"),
    description="The list ends at 4 MiB of JSON, and then says `truncated`.",
    parameters=(page_size(activities.RECENT),),
)  # fmt: skip
async def recent_activities(request: web.Request) -> web.StreamResponse:
    """GET /api/activities/recent: the latest activities of the caller."""
    caller = await authenticate(request)
    _, limit = window(request.query, activities.RECENT)
    found = await lists.read(request, activities.recent, caller, limit)
    return lists.unpaged(request, caller, ACTIVITIES, found)


class Pipeline(Struct, frozen=True):
    """The stages of an owner, and whether their deals may be in no others."""

    stages: list[str]
    strict: bool


PIPELINE_SHAPE = shapes.struct(Pipeline([*STAGES], False))
PIPELINE_CHANGED = shapes.written(PIPELINE_SHAPE)


@operation(
    "getPipeline", "Deals", "Read the stages of the pipeline", PIPELINE_SHAPE,
    headers=("ETag",), parameters=(IF_NONE_MATCH,),
)  # fmt: skip
async def read_pipeline(request: web.Request) -> web.Response:
    """GET /api/settings/pipeline: the stages of the caller's deals."""
    caller = await authenticate(request)
    found = await request.app[DB].read(pipelines.read, caller)
    return show(request, _view(caller, found))


@operation(
    "updatePipeline", "Deals", "Set the stages of the pipeline", PIPELINE_CHANGED,
    headers=("ETag", "X-Ignored-Fields"), parameters=(IF_MATCH,), body=shapes.changes(PIPELINE),
    description="A key without the scope `read` gets an empty object and the ETag.",
)  # fmt: skip
async def change_pipeline(request: web.Request) -> web.Response:
    """PUT /api/settings/pipeline: set what is sent."""
    caller = await authenticate(request)
    asked = draft(PIPELINE, await read_body(request), creating=False)
    changed = await request.app[DB].write(
        pipelines.change, caller, asked, expected_of(request.headers.get("If-Match"))
    )
    return show_change(caller, _view(caller, changed), asked)


def _view(caller: Actor, found: pipelines.Pipeline) -> View:
    shown = Pipeline([*found.stages], found.strict)
    return View(caller.owner_id, shown, quoted(str(found.version)))


def _beside(found: Page, page: int, limit: int) -> dict[str, Any]:
    return {"total": found.total, "page": page, "limit": limit}


def _answer(body: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), headers={"Content-Type": JSON})
