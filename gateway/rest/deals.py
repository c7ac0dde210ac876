"""Handles the figures over all deals, and the pipeline setting."""

from typing import Any

import msgspec
from aiohttp import web
from msgspec import Struct

from gateway.domain.sales import deals, pipelines
from gateway.domain.sales.pipelines import PIPELINE, STAGES
from gateway.records.values.numbers import show_money
from gateway.rest.auth import authenticate
from gateway.rest.body import draft_of, ignored, read_body
from gateway.rest.document import shapes
from gateway.rest.document.describe import IF_MATCH, IF_NONE_MATCH
from gateway.rest.document.operations import operation
from gateway.rest.errors import JSON
from gateway.rest.params import expected_of
from gateway.rest.record_json import answer, quoted, readable
from gateway.rest.records import show
from gateway.server.app_keys import DB


class StageStats(Struct, frozen=True):
    """The deals of one stage."""

    count: int
    value: int | float


class PipelineStats(Struct, frozen=True, rename="camel"):
    """Figures over all deals of an owner; `conversion_rate` is a percentage with 2 decimals."""

    total_deals: int
    total_value: int | float
    by_stage: dict[str, StageStats]
    won_deals: int
    lost_deals: int
    conversion_rate: float


STATS = PipelineStats(
    3, 22500.5, {"proposal": StageStats(2, 20000.5), "closing": StageStats(1, 2500)}, 1, 1, 50.0
)


@operation(
    "getPipelineStats", "Deals", "Figures over all deals", shapes.struct(STATS),
    description="All deals of the caller in every status; a deal without a stage counts "
    "under `(none)`. `conversionRate` is a percentage: 100 x won / (won + lost), with 2 decimals, "
    "or 0 when no deal is won or lost.",
)  # fmt: skip
async def pipeline_stats(request: web.Request) -> web.Response:
    """GET /api/deals/pipeline-stats: read figures over all deals of the caller."""
    caller = await authenticate(request)
    stats = await request.app[DB].read(deals.pipeline_stats, caller)
    by_stage = {
        name: StageStats(stage.count, show_money(stage.value))
        for name, stage in stats.by_stage.items()
    }
    return _respond(
        PipelineStats(
            stats.total_deals, show_money(stats.total_value), by_stage, stats.won_deals,
            stats.lost_deals, stats.conversion_rate,
        )
    )  # fmt: skip


class Pipeline(Struct, frozen=True):
    """The stages of an owner's pipeline, and whether deals are limited to them."""

    stages: list[str]
    strict: bool


PIPELINE_SHAPE = shapes.struct(Pipeline([*STAGES], False))
PIPELINE_CHANGED = shapes.written(PIPELINE_SHAPE)


@operation(
    "getPipeline", "Deals", "Read the stages of the pipeline", PIPELINE_SHAPE,
    headers=("ETag",), parameters=(IF_NONE_MATCH,),
)  # fmt: skip
async def read_pipeline(request: web.Request) -> web.Response:
    """GET /api/settings/pipeline: read the stages of the caller's pipeline."""
    caller = await authenticate(request)
    pipeline = await request.app[DB].read(pipelines.read, caller)
    return show(request, _shown(pipeline), _etag(pipeline))


@operation(
    "updatePipeline", "Deals", "Set the stages of the pipeline", PIPELINE_CHANGED,
    headers=("ETag", "X-Ignored-Fields"), parameters=(IF_MATCH,), body=shapes.changes(PIPELINE),
    description="A key without the scope `read` gets an empty object and the ETag.",
)  # fmt: skip
async def change_pipeline(request: web.Request) -> web.Response:
    """PUT /api/settings/pipeline: set the fields of the body."""
    caller = await authenticate(request)
    draft = draft_of(request, PIPELINE, await read_body(request), creating=False)
    changed = await request.app[DB].write(
        pipelines.change, caller, draft, expected_of(request.headers.get("If-Match"))
    )
    headers = {"ETag": _etag(changed), **ignored(draft)}
    return readable(caller, answer(_shown(changed), headers=headers))


def _shown(pipeline: pipelines.Pipeline) -> Pipeline:
    return Pipeline([*pipeline.stages], pipeline.strict)


def _etag(pipeline: pipelines.Pipeline) -> str:
    return quoted(str(pipeline.version))


def _respond(body: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), headers={"Content-Type": JSON})
