"""Declares deals, implements their rules, and computes the pipeline figures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.domain.sales import pipelines
from gateway.domain.sales.pipelines import Pipeline
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.errors import Fault
from gateway.records.record import Draft, Record
from gateway.records.resource import (
    BY_TIME,
    LASTS,
    DerivedColumn,
    Field,
    Filter,
    Reference,
    Remove,
    Resource,
    Sort,
    Unset,
    empty_last,
)
from gateway.records.values import dates, formats, instants, numbers
from outbox.database.transaction import Tx

STATUSES = ("open", "won", "lost")
MOST_STAGES = 500
"""Stages that the deals of one owner can be in, since figures have a row for each."""
NO_STAGE = "(none)"
"""The name under which pipeline-stats counts deals without a stage."""
SHOP_STAGE = "checkout"
"""The stage of the deals of orders."""


DEALS = Resource(
    noun="deal",
    plural="deals",
    table="deals",
    description="A possible sale, with its stage in the owner's pipeline.",
    fields=(
        Field("title", "title", formats.title(), "Title.", "Yearly supply", required=True),
        Field("value", "value", numbers.money(), "Estimated value in BRL.", 12500.5, required=True),
        Field(
            "currency", "currency", formats.one_of("BRL"), "Currency of the value.", "BRL",
            on_create=False, on_update=False, default="BRL",
        ),
        Field(
            "stage", "stage", formats.title(64),
            "Stage in the sales funnel: any text, unless the pipeline is strict. The deals of an "
            "account can be in 500 different stages.", "proposal",
        ),
        Field(
            "status", "status", formats.one_of(*STATUSES),
            "Always open on create; every change of status is allowed.", "open",
            on_create=False, default="open", nullable=False,
        ),
        Field(
            "probability", "probability", numbers.integer(0, 100), "Chance of winning in percent.",
            60,
        ),
        Field(
            "companyId", "company_id", formats.id_of("company"), "The company of the deal.",
            "018f3a5b7c9d1e2f3a4b5c6d", reference=Reference("company", "companies"),
        ),
        Field(
            "contactIds", "contact_ids", formats.ids_of("contact"), "The people involved.",
            ["018f3a5b7c9d1e2f3a4b5c6e"], default="[]",
            reference=Reference("contact", "contacts"), listed_in="deal_contacts",
        ),
        Field(
            "expectedCloseDate", "expected_close_at", instants.instant(),
            "Expected date of closing; a date without a time means that whole day.",
            "2026-12-15", beside=(DerivedColumn("expected_close_day", dates.is_bare, part=True),),
        ),
        Field(
            "closedAt", "closed_at", instants.moment(), "Time when the deal was won or lost.",
            "2026-12-10T14:30:00.000Z", on_create=False, on_update=False, on_import=True,
        ),
        Field(
            "lostReason", "lost_reason", formats.text(formats.LONG),
            "Why the deal was lost; cleared when the status changes.", "Price",
            on_create=False,
        ),
    ),
    events={
        "created": ("id", "title", "value", "stage", "status", "createdAt"),
        "updated": ("id", "title", "stage", "probability", "updatedAt"),
        "deleted": ("id",),
    },
    filterable=("stage", "status"),
    known_after={"created": {"status": "open"}},
    search=("title",),
    filters=(
        Filter(
            "status", "status = {}", "text", "Only deals of this status.", STATUSES,
        ),
        Filter("stage", "stage = {}", "text", "Only deals in this stage."),
        Filter(
            "contactId",
            "id in (select record_id from deal_contacts where owner_id = $1 and value = {})"
            f" and {LASTS}",
            "id", "Only deals that involve this contact.",
        ),
        Filter(
            "companyId", f"company_id = {{}} and {LASTS}", "id", "Only deals with this company.",
        ),
        Filter("minValue", "value >= {}", "money", "Only deals of at least this value."),
        Filter("maxValue", "value <= {}", "money", "Only deals of at most this value."),
    ),
    sorts=(
        *BY_TIME,
        Sort("value", "value"),
        empty_last("expectedCloseDate", "expected_close_at"),
    ),
    cascades=(
        Unset("tasks", "deal_id"),
        Unset("quotes", "deal_id"),
        Unset("invoices", "deal_id"),
        Unset("orders", "deal_id"),
        Remove("activities", "related_id"),
    ),
)  # fmt: skip


async def create(tx: Tx, actor: Actor, draft: Draft) -> Record:
    """Create a deal, with a stage of the pipeline if that is strict. See actions.create."""
    actor.must("write")
    new = draft.sent
    faults = rules(None, new, await pipelines.of(tx, actor) if "stage" in new else None)
    faults += await too_many_stages(tx, actor, new.get("stage"))
    values = await actions.check(tx, actor, DEALS, draft, faults=faults)
    return actions.announce(
        tx, "created", await actions.insert(tx, actor, DEALS, values), before=None
    )


async def change(
    tx: Tx, actor: Actor, record_id: str, draft: Draft, expected: frozenset[str] | None = None
) -> Record:
    """Change a deal. See actions.change.

    A status in the request always emits an event, changed or not.
    """
    before = await actions.own(tx, actor, DEALS, record_id, "write", lock=True)
    named = DEALS.named
    new = {name: v for name, v in draft.sent.items() if v != before[named[name].column]}
    faults = rules(before, new, await pipelines.of(tx, actor) if "stage" in new else None)
    faults += await too_many_stages(tx, actor, new.get("stage"))
    values = await actions.check(tx, actor, DEALS, draft, before, faults)
    actions.must_match(before, expected)
    changes = actions.changes_of(before, values)
    if not changes and "status" not in draft.sent:
        return before
    changes |= closing(before, changes, tx.now)
    return actions.announce(
        tx, "updated", await actions.update(tx, actor, before, changes), before=before
    )


async def restore(tx: Tx, actor: Actor, deal: Record, draft: Draft) -> Record:
    """Win, lose or reopen a deal as a file says, which may know when that was.

    Raises the faults of the draft.
    """
    faults = rules(deal, draft.sent, None)
    draft.must_hold(faults)
    values = {column: value for column, value in draft.values.items() if column != "closed_at"}
    changes = actions.changes_of(deal, values)
    if not changes:
        return deal
    # A deal that is lost keeps a reason that comes with its status.
    changes = closing(deal, changes, tx.now) | changes
    at = dates.settled(draft.sent.get("closedAt"), actor.zone)
    if at is not None and changes.get("closed_at") is not None:
        changes["closed_at"] = at
    return actions.announce(
        tx, "updated", await actions.update(tx, actor, deal, changes), before=deal
    )


def rules(before: Record | None, new: Mapping[str, Any], pipeline: Pipeline | None) -> list[Fault]:
    """Return the faults of the fields that would change: the stage and the reason of a loss.

    `pipeline` is required when `new` has a stage.
    """
    faults = []
    stage = new.get("stage")
    stages = pipeline.stages if pipeline is not None and pipeline.strict else None
    if stage is not None and stages is not None and stage not in stages:
        message = f"Your pipeline is strict; send one of: {', '.join(stages)}."
        faults.append(Fault("stage", "not_allowed", message))
    status = new.get("status", None if before is None else before["status"])
    if before is not None and new.get("lostReason") is not None and status != "lost":
        message = "lostReason requires the status lost."
        faults.append(Fault("lostReason", "not_lost", message))
    return faults


_USED = "select 1 as found from deal_totals where owner_id = $1 and stage = $2 limit 1"
_COUNT_STAGES = """
select count(*) as n from (
  select distinct stage from deal_totals where owner_id = $1 and stage <> '' limit $2) as stages
"""


async def too_many_stages(tx: Tx, actor: Actor, stage: str | None) -> list[Fault]:
    """Return a fault when the stage is new and the owner's deals are in MOST_STAGES others."""
    if stage is None or await tx.one(_USED, actor.owner_id, stage) is not None:
        return []
    row = await tx.one(_COUNT_STAGES, actor.owner_id, MOST_STAGES)
    if row is None or row["n"] < MOST_STAGES:
        return []
    text = "Your deals are in {most} stages already; use one of them."
    return [Fault("stage", "too_many", text, {"most": MOST_STAGES})]


def closing(before: Record, changes: Mapping[str, Any], now: int) -> dict[str, Any]:
    """Return the columns that follow from a new status: closedAt and a cleared lostReason."""
    status = changes.get("status")
    if status is None:
        return {}
    closed: dict[str, Any] = {"closed_at": None if status == "open" else now}
    if before["status"] == "lost":
        closed["lost_reason"] = None
    return closed


@dataclass(frozen=True, slots=True)
class StageStats:
    """The deals of one stage; the value is in centavos."""

    count: int
    value: int


@dataclass(frozen=True, slots=True)
class PipelineStats:
    """Figures over all deals of an owner: centavos, and a percentage with 2 decimals."""

    total_deals: int
    total_value: int
    by_stage: Mapping[str, StageStats]
    won_deals: int
    lost_deals: int
    conversion_rate: float


_TOTALS = "select stage, status, n, value from deal_totals where owner_id = $1"


async def pipeline_stats(tx: Tx, actor: Actor) -> PipelineStats:
    """Return figures over all deals of the owner in every status; stages in pipeline order.

    It reads the running totals, so its cost does not depend on the number of deals.
    """
    actor.must("read")
    by_status = dict.fromkeys(STATUSES, 0)
    # Added in Python, because the sum of very many values exceeds the engines' integers.
    by_stage: dict[str, tuple[int, int]] = {}
    for row in await tx.all(_TOTALS, actor.owner_id):
        stage = row["stage"] or NO_STAGE
        count, worth = by_stage.get(stage, (0, 0))
        by_stage[stage] = (count + row["n"], worth + row["value"])
        by_status[row["status"]] += row["n"]
    won, lost = by_status["won"], by_status["lost"]
    return PipelineStats(
        sum(by_status.values()),
        sum(worth for _, worth in by_stage.values()),
        {
            name: StageStats(*by_stage[name])
            for name in in_order(by_stage, await pipelines.of(tx, actor))
        },
        won,
        lost,
        percent(won, won + lost),
    )


def in_order(stages: Mapping[str, Any], pipeline: Pipeline) -> list[str]:
    """Return the pipeline's stages first, then others by name, and NO_STAGE last."""
    position = {stage: i for i, stage in enumerate(pipeline.stages)}
    return sorted(stages, key=lambda s: (s == NO_STAGE, position.get(s, len(position)), s))


def percent(part: int, whole: int) -> float:
    """Return 100 · part / whole, rounded half up to 2 decimals; 0 when `whole` is 0."""
    return (20_000 * part + whole) // (2 * whole) / 100 if whole else 0.0
