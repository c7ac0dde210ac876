"""Deals: the sales that an owner is after, by stage and status."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from msgspec import Struct

from gateway import actions, dates, formats, nested, store
from gateway.access import Caller
from gateway.errors import Fault
from gateway.resource import (
    BY_TIME,
    LASTS,
    Beside,
    Field,
    Filter,
    Reference,
    Remove,
    Resource,
    Sort,
    Unset,
)
from gateway.resources.crm import pipelines
from gateway.validation import Draft
from gateway.views import View
from outbox.database.transaction import Tx
from outbox.ids import is_id

STATUSES = ("open", "won", "lost")
NO_STAGE = "(none)"
"""Where pipeline-stats counts the deals without a stage."""


def _close(before: Mapping[str, Any] | None, values: dict[str, Any], now: int) -> dict[str, Any]:
    """closedAt follows the status; the reason of a loss goes with the loss."""
    status = values.get("status")
    if status is None or before is None:
        return {}
    closed: dict[str, Any] = {"closed_at": None if status == "open" else now}
    if before["status"] == "lost":
        closed["lost_reason"] = None
    return closed


def _amount(name: str, sql: str, description: str) -> Filter:
    check = formats.money()
    return Filter(name, sql, formats.from_query(check), check.schema, description)


DEALS = Resource(
    noun="deal",
    plural="deals",
    table="deals",
    description="A possible sale, with its stage in the owner's pipeline.",
    fields=(
        Field("title", "title", formats.title(), "Title.", "Yearly supply", required=True),
        Field("value", "value", formats.money(), "Estimated value in BRL.", 12500.5, required=True),
        Field(
            "currency", "currency", formats.one_of("BRL"), "Currency of the value.", "BRL",
            on_create=False, on_update=False, default="BRL",
        ),
        Field(
            "stage", "stage", formats.title(64),
            "Stage in the sales funnel: any text, unless the pipeline is strict.", "proposal",
        ),
        Field(
            "status", "status", formats.one_of(*STATUSES),
            "Always open on create; each may follow each.", "open",
            on_create=False, default="open", nullable=False,
        ),
        Field(
            "probability", "probability", formats.integer(0, 100), "Chance of winning in percent.",
            60,
        ),
        Field(
            "companyId", "company_id", formats.id_of("company"), "The company it is with.",
            "018f3a5b7c9d1e2f3a4b5c6d", reference=Reference("company", "companies"),
        ),
        Field(
            "contactIds", "contact_ids", nested.ids_of("contact"), "The people involved.",
            ["018f3a5b7c9d1e2f3a4b5c6e"], default="[]",
            reference=Reference("contact", "contacts"), listed_in="deal_contacts",
        ),
        Field(
            "expectedCloseDate", "expected_close_at", formats.instant(),
            "When it should be closed; a date without a time means that whole day.",
            "2026-12-15", beside=(Beside("expected_close_day", dates.is_day),),
        ),
        Field(
            "closedAt", "closed_at", formats.instant(), "When it was won or lost.",
            "2026-12-10T14:30:00.000Z", on_create=False, on_update=False,
        ),
        Field(
            "lostReason", "lost_reason", formats.text(formats.LONG),
            "Why it was lost, of a lost deal only; goes when it is no longer lost.", "Price",
            on_create=False,
        ),
    ),
    events={
        "created": ("id", "title", "value", "stage", "status", "createdAt"),
        "updated": ("id", "title", "stage", "probability", "updatedAt"),
        "deleted": ("id",),
    },
    filters=(
        Filter(
            "status", "status = {}", str, {"type": "string", "enum": list(STATUSES)},
            "Only deals of this status.",
        ),
        Filter("stage", "stage = {}", str, {"type": "string"}, "Only deals in this stage."),
        Filter(
            "contactId",
            "id in (select record_id from deal_contacts where owner_id = $1 and value = {})"
            f" and {LASTS}",
            str.lower, {"type": "string"}, "Only deals that involve this contact.",
        ),
        Filter(
            "companyId", f"company_id = {{}} and {LASTS}", str.lower, {"type": "string"},
            "Only deals with this company.",
        ),
        _amount("minValue", "value >= {}", "Only deals worth at least this."),
        _amount("maxValue", "value <= {}", "Only deals worth at most this."),
    ),
    sorts=(
        *BY_TIME,
        Sort("value", "value"),
        # What has none last; indexed in exactly this spelling.
        Sort("expectedCloseDate", "coalesce(expected_close_at, 9223372036854775807)"),
    ),
    cascades=(
        Unset("tasks", "deal_id"),
        Unset("quotes", "deal_id"),
        Unset("invoices", "deal_id"),
        Remove("activities", "related_id"),
    ),
    compute=_close,
    announce_on=("status",),
)  # fmt: skip


async def create(tx: Tx, caller: Caller, resource: Resource, draft: Draft) -> View:
    """`actions.create`, with the stage held to a strict pipeline."""
    draft = _with(draft, await _stage_faults(tx, caller, draft.sent.get("stage")))
    return await actions.create(tx, caller, resource, draft)


async def change(
    tx: Tx,
    caller: Caller,
    resource: Resource,
    record_id: str,
    draft: Draft,
    if_match: str | None = None,
) -> View:
    """`actions.change`, with a new stage held to a strict pipeline and a reason to a loss.

    What is sent as it is stored is no change, and is not judged.
    """
    sent = draft.sent
    if sent.get("stage") is not None or sent.get("lostReason") is not None:
        record = None
        if is_id(record_id):
            record = await store.fetch(tx, resource, record_id.lower(), lock=True)
        if record is not None:
            stored = dict(zip(resource.columns, record, strict=True))
            new = {n: v for n, v in sent.items() if v != stored[resource.named[n].column]}
            faults = await _stage_faults(tx, caller, new.get("stage"))
            if new.get("lostReason") is not None and sent.get("status", stored["status"]) != "lost":
                message = "Only a lost deal has a reason; send it with status lost."
                faults.append(Fault("lostReason", "not_lost", message))
            draft = _with(draft, faults)
    return await actions.change(tx, caller, resource, record_id, draft, if_match)


async def _stage_faults(tx: Tx, caller: Caller, stage: str | None) -> list[Fault]:
    """A fault when the stage is none of a strict pipeline's."""
    if stage is None:
        return []
    wanted = await pipelines.of(tx, caller)
    if not wanted.strict or stage in wanted.stages:
        return []
    stages = ", ".join(wanted.stages)
    message = f"Your pipeline is strict; send one of: {stages}."
    return [Fault("stage", "not_allowed", message)]


def _with(draft: Draft, faults: list[Fault]) -> Draft:
    """The draft with more faults, which wait until it is known whose deal it is.

    A copy, since the unit may run twice with the one that it was handed.
    """
    return replace(draft, faults=[*draft.faults, *faults]) if faults else draft


class StageStats(Struct, frozen=True):
    """The deals of one stage."""

    count: int
    value: int | float


class PipelineStats(Struct, frozen=True, rename="camel"):
    """All deals of one owner in figures; `conversion_rate` is percent, with 2 decimals."""

    total_deals: int
    total_value: int | float
    by_stage: dict[str, StageStats]
    won_deals: int
    lost_deals: int
    conversion_rate: float


_TOTALS = "select stage, status, n, value from deal_totals where owner_id = $1"


async def pipeline_stats(tx: Tx, caller: Caller) -> PipelineStats:
    """Figures over all deals of the caller, whatever their status; stages in pipeline order.

    Reads the running totals, so it costs the same however many deals there are.
    """
    caller.must("read")
    by_status = dict.fromkeys(STATUSES, 0)
    # Added up here: the value of very many deals may pass what the engines can sum.
    by_stage: dict[str, tuple[int, int]] = {}
    for row in await tx.all(_TOTALS, caller.user_id):
        stage = row["stage"] or NO_STAGE
        count, worth = by_stage.get(stage, (0, 0))
        by_stage[stage] = (count + row["n"], worth + row["value"])
        by_status[row["status"]] += row["n"]
    won, lost = by_status["won"], by_status["lost"]
    return PipelineStats(
        sum(by_status.values()),
        formats.show_money(sum(worth for _, worth in by_stage.values())),
        {
            name: StageStats(by_stage[name][0], formats.show_money(by_stage[name][1]))
            for name in in_order(by_stage, await pipelines.of(tx, caller))
        },
        won,
        lost,
        percent(won, won + lost),
    )


def in_order(stages: Mapping[str, Any], wanted: pipelines.Pipeline) -> list[str]:
    """The pipeline's stages first, then others by name, and what has none last."""
    place = {stage: i for i, stage in enumerate(wanted.stages)}
    return sorted(stages, key=lambda s: (s == NO_STAGE, place.get(s, len(place)), s))


def percent(part: int, whole: int) -> float:
    """100 · part / whole, rounded half up to 2 decimals; 0 of nothing."""
    return (20_000 * part + whole) // (2 * whole) / 100 if whole else 0.0
