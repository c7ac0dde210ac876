"""The page of the checkpoints of the delivery log: list the last ones, save one, make one now."""

from aiohttp import web

from gateway.console.layout import error_pages, pages, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.domain.webhooks import checkpoints
from gateway.records.errors import Refusal
from gateway.server.app_keys import DB, KEYRING

PATH = "/console/checkpoints"
SHOWN = 24
"""The hourly ones of a day."""


async def index(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """List the last checkpoints."""
    return await _page(request, visitor)


async def make(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Make a checkpoint of what has grown since the last one."""
    try:
        checkpoint = await checkpoints.take(request.app[DB], visitor.actor, request.app[KEYRING])
    except Refusal as refusal:
        if refusal.code != "rate_limited":
            raise
        return await _page(request, visitor, refusal)
    return pages.to(PATH, "checkpoint" if checkpoint else "no_checkpoint")


async def file(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Send a checkpoint as the file that `carteiro verify --checkpoint` reads."""
    number = int(request.match_info["number"])
    listed = await request.app[DB].read(checkpoints.listed, visitor.actor, number + 1, 1)
    if not listed or listed[0].number != number:
        raise Refusal("not_found", "error.not_found_help")
    return web.Response(
        text=f"{listed[0].body}\n",
        content_type="text/plain",
        charset="utf-8",
        headers={"Content-Disposition": f'attachment; filename="checkpoint-{number}.txt"'},
    )


async def _page(
    request: web.Request, visitor: SignedIn, refusal: Refusal | None = None
) -> web.Response:
    rows = await request.app[DB].read(checkpoints.listed, visitor.actor, None, SHOWN)
    context = {"checkpoints": rows, "refused": refusal is not None}
    status = 200 if refusal is None else error_pages.status_of(refusal)
    response = templates.render(request, visitor, "checkpoints.html", context, status=status)
    if refusal is not None:
        response.headers["Retry-After"] = str(refusal.facts["retry_after"])
    return response
