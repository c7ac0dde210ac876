"""Handles the list of the latest activities."""

from aiohttp import web

from gateway.domain.contacts import activities
from gateway.domain.contacts.activities import ACTIVITIES
from gateway.rest import lists
from gateway.rest.auth import authenticate
from gateway.rest.document import shapes
from gateway.rest.document.describe import page_size
from gateway.rest.document.operations import operation
from gateway.rest.params import window


@operation(
    "listRecentActivities",
    "Activities",
    "The latest activities",
    shapes.list_of(shapes.record(ACTIVITIES), "RecentActivities"),
    description="The list is cut at 4 MiB of JSON; it then has `truncated`.",
    parameters=(page_size(activities.RECENT),),
)
async def recent_activities(request: web.Request) -> web.StreamResponse:
    """GET /api/activities/recent: list the caller's latest activities."""
    caller = await authenticate(request)
    _, limit = window(request.query, activities.RECENT)
    content = await lists.read(request, activities.recent, caller, limit)
    return lists.unpaged(request, caller, ACTIVITIES, content)
