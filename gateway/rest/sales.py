"""Handlers of the sales records that are not plain ones: figures, lists by date, the pipeline."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web

from gateway.access import Caller
from gateway.actions import Shown
from gateway.appkeys import DB
from gateway.auth import authenticate
from gateway.listing import window
from gateway.resources.crm import activities, deals, pipelines, tasks
from gateway.resources.crm.pipelines import PIPELINE
from gateway.rest.handlers import JSON, Handler, read_body, show, show_change
from gateway.validation import draft
from outbox.database import Tx

ByDate = Callable[[Tx, Caller, int, int], Awaitable[Shown]]


async def pipeline_stats(request: web.Request) -> web.Response:
    """GET /api/deals/pipeline-stats: figures over all deals of the caller."""
    caller = await authenticate(request)
    return _answer(await request.app[DB].read(deals.pipeline_stats, caller))


def by_due_date(unit: ByDate) -> Handler:
    """GET /api/tasks/overdue and /upcoming: `data`, and in `total` how many there are in all."""

    async def handle(request: web.Request) -> web.Response:
        caller = await authenticate(request)
        page, limit = window(request.query, tasks.MOST, tasks.MOST)
        found = await request.app[DB].read(unit, caller, page, limit)
        return _answer(_due(found, page, limit))

    return handle


async def calendar(request: web.Request) -> web.Response:
    """GET /api/tasks/calendar: the tasks that are due from `start` to `end`."""
    caller = await authenticate(request)
    query = request.query
    page, limit = window(query, tasks.MOST, tasks.MOST)
    found = await request.app[DB].read(
        tasks.calendar, caller, page, limit, query.get("start", ""), query.get("end", "")
    )
    return _answer(_due(found, page, limit))


async def recent_activities(request: web.Request) -> web.Response:
    """GET /api/activities/recent: the latest activities of the caller."""
    caller = await authenticate(request)
    _, limit = window(request.query, activities.RECENT)
    return _answer({"data": await request.app[DB].read(activities.recent, caller, limit)})


async def read_pipeline(request: web.Request) -> web.Response:
    """GET /api/settings/pipeline: the stages of the caller's deals."""
    caller = await authenticate(request)
    return show(request, await request.app[DB].read(pipelines.read, caller))


async def change_pipeline(request: web.Request) -> web.Response:
    """PUT /api/settings/pipeline: set what is sent."""
    caller = await authenticate(request)
    asked = draft(PIPELINE, await read_body(request), creating=False)
    changed = await request.app[DB].write(
        pipelines.change, caller, asked, request.headers.get("If-Match")
    )
    return show_change(changed, asked)


def _due(found: Shown, page: int, limit: int) -> dict[str, Any]:
    return {"data": found.records, "total": found.total, "page": page, "limit": limit}


def _answer(body: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), headers={"Content-Type": JSON})
