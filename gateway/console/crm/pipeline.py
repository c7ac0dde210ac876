"""The settings of the pipeline: its stages in their order, and whether others are refused."""

from dataclasses import replace

from aiohttp import web

from gateway.console.crm import settings_form
from gateway.console.crm.settings_form import Shown
from gateway.console.layout import pages, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.domain.sales import pipelines
from gateway.domain.sales.pipelines import PIPELINE
from gateway.server.app_keys import DB

PATH = "/console/settings/pipeline"


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the stages, one a line."""
    pipeline = await request.app[DB].read(pipelines.read, visitor.actor)
    typed = {"stages": "\n".join(pipeline.stages), "strict": pipeline.strict}
    return _page(request, visitor, Shown(typed, str(pipeline.version)))


async def save(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Save the stages unless they have changed since the form was loaded; deals keep theirs."""
    shown = await settings_form.save(request, visitor, form, PIPELINE, pipelines.change)
    if shown is None:
        return pages.to(PATH, "saved")
    if "no_stages" in shown.codes:
        message = request[READER].texts("pipeline.no_stages")
        shown = replace(shown, faults=dict.fromkeys(shown.faults, message))
    return _page(request, visitor, shown)


def _page(request: web.Request, visitor: SignedIn, shown: Shown) -> web.Response:
    context = {"typed": shown.typed, "version": shown.version, "faults": shown.faults}
    return templates.render(request, visitor, "pipeline.html", context, status=shown.status)
