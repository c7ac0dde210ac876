"""The settings of the pipeline: its stages in their order, and whether others are refused."""

from collections.abc import Mapping

from aiohttp import web

from gateway.console.layout import error_pages, pages, templates
from gateway.console.layout.forms import Form
from gateway.console.layout.guard import SignedIn
from gateway.console.layout.reader import READER
from gateway.console.records import inputs
from gateway.console.records.inputs import Typed
from gateway.domain.sales import pipelines
from gateway.domain.sales.pipelines import PIPELINE
from gateway.records.draft import check
from gateway.records.errors import Refusal
from gateway.server.app_keys import DB

PATH = "/console/settings/pipeline"


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the stages, one a line."""
    pipeline = await request.app[DB].read(pipelines.read, visitor.actor)
    typed = {"stages": "\n".join(pipeline.stages), "strict": pipeline.strict}
    return _page(request, visitor, typed, str(pipeline.version), {})


async def save(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Save the stages unless they have changed since the form was loaded; deals keep theirs."""
    texts = request[READER].texts
    form_inputs = inputs.inputs(texts, PIPELINE.fields)
    typed = inputs.of_form(form, form_inputs)
    draft = check(
        PIPELINE, inputs.values(typed, form_inputs, texts, creating=False), from_json=True
    )
    version = form.text("version")
    try:
        await request.app[DB].write(pipelines.change, visitor.actor, draft, frozenset({version}))
    except Refusal as refusal:
        if refusal.code == "precondition_failed":
            raise Refusal("conflict", "error.changed") from None
        if not refusal.faults:
            raise
        faults = {
            name: texts("pipeline.no_stages") if _is(refusal, "no_stages") else message
            for name, message in inputs.faults(texts, refusal.faults, form_inputs, typed).items()
        }
        return _page(request, visitor, typed, version, faults, error_pages.status_of(refusal))
    return pages.to(PATH, "saved")


def _is(refusal: Refusal, code: str) -> bool:
    return any(fault.code == code for fault in refusal.faults)


def _page(
    request: web.Request,
    visitor: SignedIn,
    typed: Typed,
    version: str,
    faults: Mapping[str, str],
    status: int = 200,
) -> web.Response:
    context = {"typed": typed, "version": version, "faults": faults}
    return templates.render(request, visitor, "pipeline.html", context, status=status)
